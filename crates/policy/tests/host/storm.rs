//! Applications that do what they like, at random.

use crate::audit::Audit;
use crate::hosts::{Toy, settle};
use headway_policy::Rng;
use headway_policy::host::systems::{self, HostSystem, HostVisit, NAMES};
use headway_policy::host::{
    Allocator, AppId, AppKind, AppShape, CoreId, Counters, HeldCore, HostShape, HostTopology,
    Kthread, KthreadId, Shenango, ShenangoRules, Usage,
};
use proptest::prelude::*;

/// Applications do what they like for `steps` events; with `churn` they come and go as well.
struct Storm<'a> {
    shape: &'a HostShape,
    steps: usize,
    seed: u64,
    churn: bool,
}

/// A shape that can be admitted, and the cores that it says it holds, some of them a lie.
fn newcomer(rng: &mut Rng, audit: &Audit) -> (AppShape, Vec<HeldCore>) {
    let cores = audit.tenants.len();
    let guaranteed = rng.below(cores - audit.guaranteed() + 1);
    let least = guaranteed.max(1);
    let shape = AppShape {
        guaranteed,
        most: least + rng.below(cores - least + 1),
        kind: if rng.below(3) == 0 {
            AppKind::Batch
        } else {
            AppKind::Latency
        },
    };
    let mut holding = Vec::new();
    for _ in 0..rng.below(3) {
        holding.push(HeldCore {
            core: CoreId(rng.below(cores + 1) as u16),
            kthread: KthreadId(rng.below(shape.most + 1) as u16),
        });
    }
    // An application does not hold more than it may have.
    holding.truncate(shape.most);
    (shape, holding)
}

impl HostVisit for Storm<'_> {
    type Output = usize;

    fn visit<A: Allocator>(self, mut system: HostSystem<A>) -> usize {
        let allocator = &mut system.allocator;
        let mut rng = Rng::new(self.seed);
        let mut audit = Audit::new(self.shape);
        let apps = self.shape.apps.len();
        let mut toy = Toy {
            kthreads: self
                .shape
                .apps
                .iter()
                .map(|app| vec![Kthread::default(); app.most])
                .collect(),
            usage: vec![Usage::default(); apps],
        };
        let (mut now_ns, mut moves) = (0, 0);
        for _ in 0..self.steps {
            while let Some(decision) = allocator.poll() {
                audit.carry_out(decision, system.name == "shenango");
                moves += 1;
            }
            audit.agrees_with(allocator.cores());
            match rng.below(4 + usize::from(self.churn)) {
                4 => {
                    let app = AppId(rng.below(apps) as u16);
                    if audit.shape.apps[app.index()].is_vacant() {
                        let (shape, holding) = newcomer(&mut rng, &audit);
                        let greedy = AppShape {
                            guaranteed: audit.tenants.len() + 1 - audit.guaranteed(),
                            most: audit.tenants.len(),
                            ..shape
                        };
                        assert!(allocator.cores().check_admission(app, greedy).is_err());
                        allocator
                            .cores()
                            .check_admission(app, shape)
                            .expect("it fits");
                        audit.admit(app, shape, &holding);
                        allocator.admit(now_ns, app, shape, &holding);
                        toy.kthreads[app.index()] = vec![Kthread::default(); shape.most];
                        toy.usage[app.index()] = Usage::default();
                    } else {
                        assert!(
                            allocator
                                .cores()
                                .check_admission(app, AppShape::VACANT)
                                .is_err()
                        );
                        audit.retire(app);
                        allocator.retire(now_ns, app);
                    }
                }
                0 => {
                    let app = AppId(rng.below(apps) as u16);
                    if !audit.shape.apps[app.index()].is_vacant() {
                        allocator.arrived(now_ns, app);
                    }
                }
                1 => {
                    let core = rng.below(self.shape.topology.cores());
                    let may = A::PARKS || audit.leaving[core];
                    if audit.tenants[core].is_some() && may {
                        audit.release(CoreId(core as u16));
                        allocator.released(now_ns, CoreId(core as u16));
                    }
                }
                2 => {
                    let app = rng.below(apps);
                    if audit.shape.apps[app].is_vacant() {
                        continue;
                    }
                    let kthread = rng.below(toy.kthreads[app].len());
                    let Counters { head, tail } = toy.kthreads[app][kthread].run;
                    let tail = tail + rng.below(3) as u64;
                    let head = head + rng.below((tail - head) as usize + 1) as u64;
                    toy.kthreads[app][kthread].run = Counters { head, tail };
                }
                _ => {
                    if let Some(at_ns) = allocator.next_deadline_ns() {
                        assert!(at_ns > now_ns, "the deadline lies ahead");
                        for usage in &mut toy.usage {
                            usage.busy_ns += rng.below((4 * (at_ns - now_ns)) as usize) as u64;
                            usage.runnable_ns += rng.below((12 * (at_ns - now_ns)) as usize) as u64;
                        }
                        now_ns = at_ns;
                        allocator.look(now_ns, &toy);
                    }
                }
            }
        }
        moves
    }
}

fn hosts() -> impl Strategy<Value = HostShape> {
    let app = (0usize..6, 0usize..8, any::<bool>());
    (
        1usize..20,
        any::<bool>(),
        prop::collection::vec(app, 1..6),
        any::<u64>(),
    )
        .prop_map(|(cores, paired, apps, seed)| {
            let mut left = cores;
            let limits = |(guaranteed, burst, batch): (usize, usize, bool)| {
                let guaranteed = guaranteed.min(left);
                left -= guaranteed;
                AppShape {
                    guaranteed,
                    most: (guaranteed + burst).clamp(1, cores),
                    kind: if batch {
                        AppKind::Batch
                    } else {
                        AppKind::Latency
                    },
                }
            };
            HostShape {
                apps: apps.into_iter().map(limits).collect(),
                topology: if paired {
                    HostTopology::paired(cores)
                } else {
                    HostTopology::flat(cores)
                },
                seed,
            }
        })
}

proptest! {
    /// One tenant a core, one core a kthread, burst limits kept; Shenango takes nothing guaranteed, and
    /// nothing at all while a core is idle.
    #[test]
    fn every_allocator_keeps_its_promises(shape in hosts(), seed: u64) {
        shape.check().expect("the strategy makes valid hosts");
        for name in NAMES {
            let storm = Storm { shape: &shape, steps: 400, seed, churn: false };
            systems::with(&name.parse().unwrap(), &shape, storm).unwrap();
        }
    }

    /// The same where applications come, with cores or without, and go, at any time.
    #[test]
    fn every_allocator_keeps_its_promises_while_applications_come_and_go(
        cores in 1usize..12, slots in 1usize..6, paired: bool, seed: u64,
    ) {
        let topology = if paired { HostTopology::paired(cores) } else { HostTopology::flat(cores) };
        let shape = HostShape::vacant(topology, slots, seed);
        for name in NAMES {
            let storm = Storm { shape: &shape, steps: 600, seed, churn: true };
            systems::with(&name.parse().unwrap(), &shape, storm).unwrap();
        }
    }

    /// An application that is congested for as many looks as it has guaranteed cores has them all.
    #[test]
    fn a_congested_application_gets_its_guarantee(shape in hosts()) {
        let mut shenango = Shenango::new(&shape, ShenangoRules::default());
        let queued = Kthread { run: Counters { head: 0, tail: 1 }, ..Kthread::default() };
        let toy = Toy {
            kthreads: shape.apps.iter().map(|app| vec![queued; app.most]).collect(),
            usage: vec![Usage::default(); shape.apps.len()],
        };
        // The last comes first, so that it has burst far before the others arrive.
        for newcomer in (0..shape.apps.len()).rev() {
            shenango.arrived(0, AppId(newcomer as u16));
            for _ in 0..2 + shape.topology.cores() {
                settle(&mut shenango);
                let at_ns = shenango.next_deadline_ns().unwrap();
                shenango.look(at_ns, &toy);
            }
            settle(&mut shenango);
        }
        let cores = shenango.cores();
        for (index, app) in shape.apps.iter().enumerate() {
            prop_assert!(cores.kept(AppId(index as u16)) >= app.guaranteed, "application {}", index);
        }
        let wanted: usize = shape.apps.iter().map(|app| app.most).sum();
        if wanted >= cores.total() {
            prop_assert!(cores.idle().is_empty(), "who is congested leaves no core idle");
        }
    }
}
