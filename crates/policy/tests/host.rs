//! What every allocator of cores promises, whatever applications do.

use headway_policy::Rng;
use headway_policy::host::systems::{self, HostSystem, HostVisit, NAMES};
use headway_policy::host::{
    Allocator, AppId, AppKind, AppShape, CoreId, Counters, HostShape, HostTopology, HostView,
    Kthread, KthreadId, Move, Shenango, ShenangoRules, Tenant, Usage,
};
use proptest::prelude::*;

/// Applications whose queues and usage are whatever a test says.
#[derive(Default)]
struct Toy {
    kthreads: Vec<Vec<Kthread>>,
    usage: Vec<Usage>,
}

impl HostView for Toy {
    fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread {
        self.kthreads[app.index()][kthread.index()]
    }
    fn shared(&self, _app: AppId) -> Counters {
        Counters::default()
    }

    fn usage(&self, app: AppId) -> Usage {
        self.usage[app.index()]
    }
}

/// Books of its own, against the allocator's.
struct Audit {
    shape: HostShape,
    tenants: Vec<Option<Tenant>>,
    leaving: Vec<bool>,
}

impl Audit {
    fn new(shape: &HostShape) -> Self {
        let cores = shape.topology.cores();
        Self {
            shape: shape.clone(),
            tenants: vec![None; cores],
            leaving: vec![false; cores],
        }
    }

    fn has(&self, app: AppId, leaving_too: bool) -> usize {
        let mut count = 0;
        for (tenant, leaving) in self.tenants.iter().zip(&self.leaving) {
            let there = tenant.is_some_and(|tenant| tenant.app == app);
            count += usize::from(there && (leaving_too || !leaving));
        }
        count
    }

    /// Carries a move out; `idle_first`: nothing may be taken while a core is idle, nor from a guarantee.
    fn carry_out(&mut self, decision: Move, idle_first: bool) {
        match decision {
            Move::Grant { core, to } => {
                assert_eq!(self.tenants[core.index()], None, "{core:?} has a tenant");
                assert!(
                    !self.tenants.contains(&Some(to)),
                    "{to:?} has a core already"
                );
                let most = self.shape.apps[to.app.index()].most;
                assert!(to.kthread.index() < most, "no such kthread: {to:?}");
                self.tenants[core.index()] = Some(to);
                assert!(self.has(to.app, false) <= most, "{to:?} has too much");
            }
            Move::Revoke { core, from } => {
                assert_eq!(self.tenants[core.index()], Some(from));
                assert!(!self.leaving[core.index()], "{core:?} revoked twice");
                if idle_first {
                    let guaranteed = self.shape.apps[from.app.index()].guaranteed;
                    assert!(
                        self.has(from.app, false) > guaranteed,
                        "{from:?} was guaranteed it"
                    );
                    assert!(self.tenants.iter().all(Option::is_some), "a core is idle");
                }
                self.leaving[core.index()] = true;
            }
            Move::Evict { core, from } => {
                assert_eq!(self.tenants[core.index()], Some(from));
                assert!(
                    self.leaving[core.index()],
                    "it was told to leave before it is moved away"
                );
            }
        }
    }

    fn release(&mut self, core: CoreId) {
        self.tenants[core.index()] = None;
        self.leaving[core.index()] = false;
    }

    fn agrees_with(&self, cores: &headway_policy::host::Cores) {
        for (index, tenant) in self.tenants.iter().enumerate() {
            let core = CoreId(index as u16);
            assert_eq!(cores.tenant(core), *tenant);
            assert_eq!(cores.idle().contains(index), tenant.is_none());
            assert_eq!(cores.is_leaving(core), self.leaving[index]);
        }
        for (index, app) in self.shape.apps.iter().enumerate() {
            let id = AppId(index as u16);
            assert_eq!(cores.active(id).len(), self.has(id, true));
            assert_eq!(cores.kept(id), self.has(id, false));
            assert!(cores.held(id) <= app.most);
        }
    }
}

/// Applications do what they like for `steps` events.
struct Storm<'a> {
    shape: &'a HostShape,
    steps: usize,
    seed: u64,
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
            match rng.below(4) {
                0 => allocator.arrived(now_ns, AppId(rng.below(apps) as u16)),
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
            let storm = Storm { shape: &shape, steps: 400, seed };
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

/// Lets every kthread that is asked to leave do so at once.
fn settle(allocator: &mut impl Allocator) {
    while let Some(decision) = allocator.poll() {
        if let Move::Revoke { core, .. } = decision {
            allocator.released(0, core);
        }
    }
}

fn app(guaranteed: usize, most: usize) -> AppShape {
    AppShape {
        guaranteed,
        most,
        kind: AppKind::Latency,
    }
}

fn shenango(topology: HostTopology, apps: Vec<AppShape>) -> Shenango {
    Shenango::new(
        &HostShape {
            topology,
            apps,
            seed: 1,
        },
        ShenangoRules::default(),
    )
}

/// The core of the only move, which must be a grant.
fn granted(allocator: &mut Shenango) -> CoreId {
    let Some(Move::Grant { core, .. }) = allocator.poll() else {
        panic!("nothing was granted");
    };
    assert_eq!(allocator.poll(), None);
    core
}

struct AllQueued;

impl HostView for AllQueued {
    fn kthread(&self, _app: AppId, _kthread: KthreadId) -> Kthread {
        Kthread {
            ingress: Counters { head: 0, tail: 1 },
            ..Kthread::default()
        }
    }
    fn shared(&self, _app: AppId) -> Counters {
        Counters::default()
    }

    fn usage(&self, _app: AppId) -> Usage {
        Usage::default()
    }
}

#[test]
fn the_sibling_of_an_active_core_comes_first_then_the_core_left_last() {
    let mut host = shenango(HostTopology::paired(6), vec![app(6, 6), app(0, 6)]);
    host.arrived(0, AppId(1));
    assert_eq!(granted(&mut host), CoreId(0));
    host.arrived(0, AppId(0));
    assert_eq!(
        granted(&mut host),
        CoreId(1),
        "no sibling, none left: any idle core"
    );
    host.released(0, CoreId(0));
    host.look(5_000, &AllQueued);
    assert_eq!(host.poll(), None, "one look is not congestion");
    host.look(10_000, &AllQueued);
    assert_eq!(
        granted(&mut host),
        CoreId(0),
        "the sibling, though lower cores are no better"
    );
    host.released(0, CoreId(0));
    host.released(0, CoreId(1));
    host.arrived(0, AppId(1));
    assert_eq!(
        granted(&mut host),
        CoreId(0),
        "where application 1 was last"
    );
    host.arrived(0, AppId(0));
    assert_eq!(
        granted(&mut host),
        CoreId(1),
        "where application 0 was last"
    );
}

/// Who does not leave within the bound is moved away, once; its core then is who waited for it.
#[test]
fn a_kthread_that_refuses_to_leave_is_moved_away() {
    let shape = |kind: AppKind| AppShape {
        guaranteed: 0,
        most: 1,
        kind,
    };
    let mut host = Shenango::new(
        &HostShape {
            topology: HostTopology::flat(1),
            apps: vec![shape(AppKind::Latency), shape(AppKind::Batch)],
            seed: 5,
        },
        ShenangoRules {
            evict_ns: 20_000,
            ..ShenangoRules::default()
        },
    );
    host.arrived(0, AppId(1));
    let core = granted(&mut host);
    host.arrived(1_000, AppId(0));
    let Some(Move::Revoke { from, .. }) = host.poll() else {
        panic!("the batch application is told to leave");
    };
    for now_ns in [5_000, 10_000, 15_000, 20_000] {
        host.look(now_ns, &NoneQueued);
        assert_eq!(host.poll(), None, "it still has time");
    }
    host.look(25_000, &NoneQueued);
    assert_eq!(host.poll(), Some(Move::Evict { core, from }));
    host.look(60_000, &NoneQueued);
    assert_eq!(host.poll(), None, "it is moved once");
    host.released(61_000, core);
    assert_eq!(granted(&mut host), core);
    host.look(200_000, &NoneQueued);
    assert_eq!(host.poll(), None, "who came after it was told nothing");
}

#[test]
fn a_core_is_taken_only_when_none_is_idle_and_then_changes_hands_at_once() {
    let mut host = shenango(HostTopology::flat(2), vec![app(1, 2), app(0, 2)]);
    host.arrived(0, AppId(1));
    granted(&mut host);
    host.look(5_000, &AllQueued);
    host.look(10_000, &AllQueued);
    granted(&mut host);
    host.arrived(11_000, AppId(0));
    let Some(Move::Revoke { core, from }) = host.poll() else {
        panic!("application 0 is entitled to a core");
    };
    assert_eq!(from.app, AppId(1));
    host.arrived(11_500, AppId(0));
    assert_eq!(host.poll(), None, "it was promised one");
    host.released(12_000, core);
    let heir = Move::Grant {
        core,
        to: Tenant {
            app: AppId(0),
            kthread: KthreadId(0),
        },
    };
    assert_eq!(host.poll(), Some(heir));
    // The victim is owed the next core that is given back.
    host.released(13_000, core);
    let Some(Move::Grant { to, .. }) = host.poll() else {
        panic!("application 1 wants a core");
    };
    assert_eq!(to.app, AppId(1));
}

#[test]
fn an_application_that_arrives_in_vain_is_not_forgotten() {
    let mut host = shenango(HostTopology::flat(1), vec![app(0, 1), app(0, 1)]);
    host.arrived(0, AppId(0));
    let core = granted(&mut host);
    host.arrived(0, AppId(1));
    assert_eq!(host.poll(), None, "nobody is entitled to more");
    host.look(5_000, &AllQueued);
    assert_eq!(host.poll(), None, "one look says nothing yet");
    host.released(7_000, core);
    let Some(Move::Grant { to, .. }) = host.poll() else {
        panic!("application 1 waits");
    };
    assert_eq!(to.app, AppId(1));
}

/// Two without guarantees share one core, however busy both are, and do not trade it at each request.
#[test]
fn nobody_starves() {
    let mut host = shenango(HostTopology::flat(1), vec![app(0, 1), app(0, 1)]);
    let mut tenants = Vec::new();
    for look in 1..=100 {
        host.arrived(look * 5_000 - 1, AppId(0));
        host.arrived(look * 5_000 - 1, AppId(1));
        settle(&mut host);
        host.look(look * 5_000, &AllQueued);
        settle(&mut host);
        tenants.push(host.cores().tenant(CoreId(0)).unwrap().app);
    }
    for other in [AppId(0), AppId(1)] {
        let turns = tenants.iter().filter(|&&app| app == other).count();
        assert!((45..=55).contains(&turns), "{other:?} had {turns} of 100");
    }
    assert!(
        tenants
            .windows(3)
            .all(|three| three[0] == three[1] || three[1] == three[2])
    );
}

struct NoneQueued;

impl HostView for NoneQueued {
    fn kthread(&self, _app: AppId, _kthread: KthreadId) -> Kthread {
        Kthread::default()
    }
    fn shared(&self, _app: AppId) -> Counters {
        Counters::default()
    }
    fn usage(&self, _app: AppId) -> Usage {
        Usage::default()
    }
}

/// Who serves requests, and is guaranteed nothing, has a core as soon as it needs one, if batch applications have them all, and one more
/// whenever it is congested.
#[test]
fn a_batch_application_gives_way_at_once() {
    let batch = AppShape {
        kind: AppKind::Batch,
        ..app(0, 2)
    };
    let mut host = shenango(HostTopology::flat(2), vec![app(0, 2), batch]);
    host.arrived(0, AppId(1));
    settle(&mut host);
    for look in [5_000, 10_000] {
        host.look(look, &AllQueued);
        settle(&mut host);
    }
    assert_eq!(host.cores().kept(AppId(1)), 2);
    host.arrived(11_000, AppId(0));
    let Some(Move::Revoke { core, from }) = host.poll() else {
        panic!("application 0 gets one of the two cores");
    };
    assert_eq!(from.app, AppId(1));
    host.released(12_000, core);
    assert_eq!(granted(&mut host), core);
    // Without congestion the other keeps what is left, and takes nothing back.
    for look in 3..20 {
        host.look(look * 5_000, &NoneQueued);
        assert_eq!(host.poll(), None);
    }
    host.look(100_000, &AllQueued);
    assert_eq!(host.poll(), None, "one look is not congestion");
    host.look(105_000, &AllQueued);
    settle(&mut host);
    let kept = [AppId(0), AppId(1)].map(|app| host.cores().kept(app));
    assert_eq!(kept, [2, 0]);
    host.look(110_000, &AllQueued);
    assert_eq!(
        host.poll(),
        None,
        "the batch application waits for what is left"
    );
}

#[test]
fn arachne_takes_many_periods_to_reach_a_peak() {
    let shape = HostShape {
        topology: HostTopology::flat(8),
        apps: vec![
            app(8, 8),
            AppShape {
                kind: AppKind::Batch,
                ..app(0, 8)
            },
        ],
        seed: 1,
    };
    struct Climb;
    impl HostVisit for Climb {
        type Output = Vec<usize>;
        fn visit<A: Allocator>(self, mut system: HostSystem<A>) -> Vec<usize> {
            let host = &mut system.allocator;
            let mut toy = Toy {
                kthreads: Vec::new(),
                usage: vec![Usage::default(); 2],
            };
            let step = |_| {
                settle(host);
                let at_ns = host.next_deadline_ns().unwrap();
                toy.usage[0].runnable_ns += 50_000_000 * 100;
                host.look(at_ns, &toy);
                settle(host);
                let cores = host.cores();
                assert!(
                    cores.idle().is_empty(),
                    "the batch application has the rest"
                );
                cores.kept(AppId(0))
            };
            (0..8).map(step).collect()
        }
    }
    let climb = systems::with(&"arachne".parse().unwrap(), &shape, Climb).unwrap();
    assert_eq!(climb, [2, 3, 4, 5, 6, 7, 8, 8]);
}

#[test]
fn names_and_parameters_are_checked() {
    let check = |text: &str| systems::check(&text.parse().unwrap()).map_err(|e| e.to_string());
    let used = |text: &str| -> Vec<String> {
        check(text)
            .unwrap()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect()
    };
    assert_eq!(used("shenango"), ["interval=5us", "evict=100us"]);
    assert_eq!(
        used("interval,period=1ms,estimate=utilization"),
        [
            "period=1ms",
            "estimate=utilization",
            "utilization=0.8",
            "hysteresis=0.09"
        ]
    );
    assert_eq!(
        check("shenango,interval=5").unwrap_err(),
        "policy 'shenango': interval=5: must be a time with its unit, 100ns to 1000s, such as 5us or 50ms"
    );
    assert!(
        check("caladan")
            .unwrap_err()
            .contains("static, interval, shenango")
    );
}
