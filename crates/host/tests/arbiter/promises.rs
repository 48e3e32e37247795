//! Properties that hold for any behaviour of applications.

use crate::fakes::{FakeApp, FakePeer, SHARED, Turned, host_cores, kthreads, shape};
use headway_host::arbiter::{Arbiter, Newcomer};
use headway_policy::Rng;
use headway_policy::host::systems::{self, HostSystem, HostVisit, NAMES};
use headway_policy::host::{
    Allocator, AppKind, CoreId, HostShape, HostTopology, Shenango, ShenangoRules,
};
use proptest::prelude::*;
use std::sync::atomic::Ordering;

/// An application's reaction to an order to leave, and the words that it writes.
#[derive(Clone, Copy, PartialEq, Debug)]
enum Manners {
    Honest,
    Refuses,
    Lies,
}

struct Storm {
    cores: usize,
    seed: u64,
}

impl HostVisit for Storm {
    type Output = ();

    fn visit<A: Allocator>(self, system: HostSystem<A>) {
        let mut rng = Rng::new(self.seed);
        let clock = Turned::default();
        let mut arbiter = Arbiter::new(system.allocator, host_cores(self.cores), true);
        let mut apps: Vec<(FakeApp, Manners)> = Vec::new();
        let now = || clock.0.get();
        for step in 0..300 {
            match rng.below(8) {
                0 if apps.len() < 5 => {
                    let guaranteed = rng.below(2);
                    let kind = if rng.below(3) == 0 {
                        AppKind::Batch
                    } else {
                        AppKind::Latency
                    };
                    let most = guaranteed.max(1) + rng.below(self.cores);
                    let shape = shape(guaranteed, most.min(self.cores), kind);
                    let (app, newcomer) = kthreads(step + 1, shape);
                    let given: usize = apps.iter().map(|(app, _)| app.guaranteed).sum();
                    let admitted = arbiter.admit(newcomer, &now);
                    assert_eq!(admitted.is_ok(), given + guaranteed <= self.cores);
                    if admitted.is_ok() {
                        let manners = [Manners::Honest, Manners::Refuses, Manners::Lies];
                        apps.push((app, manners[rng.below(3)]));
                    }
                }
                1 if !apps.is_empty() => {
                    let (app, manners) = apps.swap_remove(rng.below(apps.len()));
                    if rng.below(2) == 0 {
                        // It is killed: its threads are gone before the daemon notices.
                        app.process.lock().unwrap().threads.clear();
                    }
                    assert!(arbiter.retire(app.id, &now));
                    assert!(!arbiter.retire(app.id, &now), "it is gone");
                    for mask in app.process.lock().unwrap().threads.values() {
                        let is_free = *mask == [0, 1] || *mask == [SHARED];
                        assert!(is_free, "it runs on {mask:?} still");
                        let is_back = manners == Manners::Lies || *mask == [0, 1];
                        assert!(is_back, "it ran elsewhere before, and is on {mask:?}");
                    }
                }
                _ => {}
            }
            for (app, manners) in &apps {
                act(app, *manners, &mut rng);
            }
            clock.pass(&mut arbiter, 1 + rng.below(40_000) as u64);
            check(&arbiter, &apps);
        }
        arbiter.retire_all(&now);
        assert_eq!(arbiter.allocator().cores().idle().len(), self.cores);
    }
}

/// An application's action between two passes.
fn act(app: &FakeApp, manners: Manners, rng: &mut Rng) {
    let kthread = rng.below(app.most);
    let line = app.lines.line(kthread);
    match manners {
        Manners::Honest => app.heed(),
        Manners::Refuses => {}
        Manners::Lies => {
            let lie = || [0, 1, u64::MAX, 1 << 40][step_of(app.id, kthread)];
            line.run_head.store(lie(), Ordering::Relaxed);
            line.run_tail.store(rng.next_u64(), Ordering::Relaxed);
            line.ingress_tail.store(rng.next_u64(), Ordering::Relaxed);
            line.set_tid([1, app.tid(0), u32::MAX, app.tid(kthread)][rng.below(4)]);
            if rng.below(3) == 0 {
                line.leave(headway_kthread::Grant(rng.next_u64()));
            }
            let orders = app.lines.orders(kthread);
            orders.grant_as(
                rng.below(2000) as u32,
                headway_kthread::Grant(rng.next_u64()),
            );
            orders.revoke_to(headway_kthread::Grant(rng.next_u64()));
            app.lines.app().wants.fetch_add(1, Ordering::Relaxed);
            return;
        }
    }
    match rng.below(4) {
        0 => {
            line.run_tail.fetch_add(1, Ordering::Relaxed);
            if (0..app.most).all(|kthread| app.running(kthread).is_none()) {
                app.lines.app().wants.fetch_add(1, Ordering::Relaxed);
            }
        }
        1 => {
            let (head, tail) = (&line.run_head, &line.run_tail);
            head.store(tail.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        2 => {
            if let Some(grant) = app.running(kthread) {
                line.leave(grant);
            }
        }
        _ => {}
    }
}

fn step_of(id: u64, kthread: usize) -> usize {
    (id as usize + kthread) % 4
}

fn check<A: Allocator>(arbiter: &Arbiter<A, FakePeer>, apps: &[(FakeApp, Manners)]) {
    let report = arbiter.report(0, 0, 0);
    let of = |app: &FakeApp| format!("app-{}", app.id);
    for core in &report.cores {
        for (app, _) in apps {
            if core.app.is_none() || core.app == Some(of(app)) {
                continue;
            }
            // No thread, asleep or not, is on another application's core.
            for (tid, mask) in &app.process.lock().unwrap().threads {
                assert_ne!(
                    mask,
                    &[core.core],
                    "thread {tid} of {}: {report:?}",
                    of(app)
                );
            }
        }
    }
    for (app, manners) in apps {
        let told = report.apps.iter().find(|one| one.name == of(app)).unwrap();
        assert!(told.cores.len() <= app.most);
        assert_eq!(app.process.lock().unwrap().touched_strangers, 0);
        if *manners == Manners::Honest {
            for kthread in 0..app.most {
                let mask = app.mask(kthread);
                if app.running(kthread).is_some() {
                    assert!(
                        mask.len() == 1 && (told.cores.contains(&mask[0]) || mask == [SHARED]),
                        "{mask:?}"
                    );
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whichever application lies, refuses or dies, no thread is confined to another's core, no stranger's thread is touched, and all cores come back
    /// in the end.
    #[test]
    fn a_core_has_one_tenant_whatever_applications_do(cores in 1usize..6, seed: u64) {
        for name in NAMES {
            let shape = HostShape::vacant(HostTopology::flat(cores), 8, seed);
            systems::with(&name.parse().unwrap(), &shape, Storm { cores, seed }).unwrap();
        }
    }

    /// An application with work has its guaranteed cores, even if all others refuse to leave.
    #[test]
    fn a_guarantee_is_kept_against_those_who_refuse(cores in 1usize..6, guaranteed in 1usize..6) {
        let guaranteed = guaranteed.min(cores);
        let (mut arbiter, clock) = shenango(cores);
        let now = || clock.0.get();
        let (greedy, newcomer) = kthreads(1, shape(0, cores, AppKind::Latency));
        arbiter.admit(newcomer, &now).unwrap();
        busy(&greedy);
        for _ in 0..4 * cores {
            clock.pass(&mut arbiter, 5_000);
        }
        prop_assert_eq!(arbiter.report(0, 0, 0).apps[0].cores.len(), cores);
        let (entitled, newcomer) = kthreads(2, shape(guaranteed, cores, AppKind::Latency));
        arbiter.admit(newcomer, &now).unwrap();
        busy(&entitled);
        // Each eviction doubles the time that the next may take, three times.
        for _ in 0..8 * 40 * cores {
            clock.pass(&mut arbiter, 5_000);
        }
        let report = arbiter.report(0, 0, 0);
        let kept = report.apps[1].cores.len();
        prop_assert!(kept >= guaranteed, "{} of {}", kept, guaranteed);
        prop_assert!(report.apps[0].evictions >= guaranteed as u64);
        // A kthread that was moved away finishes what it does, and gets the idle time of the shared core if it goes on.
        prop_assert!(greedy.process.lock().unwrap().demoted.is_empty());
        clock.pass(&mut arbiter, AppKind::Latency.finishes_ns());
        prop_assert!(!greedy.process.lock().unwrap().demoted.is_empty());
        // The next arbiter gives it its weight back, though another one took it.
        let (mut next, clock) = shenango(cores);
        for newcomer in arbiter.into_newcomers() {
            next.admit(newcomer, &|| clock.0.get()).unwrap();
        }
        next.retire(greedy.id, &|| clock.0.get());
        prop_assert!(greedy.process.lock().unwrap().demoted.is_empty());
    }
}

pub(crate) fn shenango(cores: usize) -> (Arbiter<Shenango, FakePeer>, Turned) {
    let vacant = HostShape::vacant(HostTopology::flat(cores), 8, 1);
    let allocator = Shenango::new(&vacant, ShenangoRules::default());
    let arbiter = Arbiter::new(allocator, host_cores(cores), true);
    (arbiter, Turned::default())
}

fn busy(app: &FakeApp) {
    app.lines.line(0).run_tail.store(1 << 30, Ordering::Relaxed);
    app.lines.app().shared_tail.store(1, Ordering::Relaxed);
    app.lines.app().wants.fetch_add(1, Ordering::Relaxed);
}

/// Two that both want the only core have it in turn, through the engine.
#[test]
fn nobody_starves() {
    let (mut arbiter, clock) = shenango(1);
    let now = || clock.0.get();
    let mut apps = Vec::new();
    for id in [1, 2] {
        let (app, newcomer) = kthreads(id, shape(0, 1, AppKind::Latency));
        arbiter.admit(newcomer, &now).unwrap();
        busy(&app);
        apps.push(app);
    }
    let mut turns = [0; 2];
    for _ in 0..200 {
        for app in &apps {
            app.heed();
            app.lines.app().wants.fetch_add(1, Ordering::Relaxed);
        }
        clock.pass(&mut arbiter, 5_000);
        for (turns, app) in turns.iter_mut().zip(&apps) {
            *turns += usize::from(app.running(0).is_some());
        }
    }
    assert!(turns.iter().all(|&turns| turns > 50), "{turns:?}");
}

/// The next engine finds every kthread on its core, and continues with its grants.
#[test]
fn a_new_engine_takes_over_who_has_which_core() {
    let (mut arbiter, clock) = shenango(2);
    let now = || clock.0.get();
    let shapes = [shape(1, 2, AppKind::Latency), shape(0, 1, AppKind::Batch)];
    let mut apps = Vec::new();
    for (shape, id) in shapes.into_iter().zip([1, 2]) {
        let (app, newcomer) = kthreads(id, shape);
        arbiter.admit(newcomer, &now).unwrap();
        app.lines.app().wants.fetch_add(1, Ordering::Relaxed);
        apps.push(app);
    }
    clock.pass(&mut arbiter, 1_000);
    let before: Vec<_> = arbiter.report(0, 0, 0).cores;
    assert!(before.iter().all(|core| core.app.is_some()));
    // The daemon crashes.
    drop(arbiter);
    let (mut next, _) = shenango(2);
    let resumed = |app: &FakeApp, shape| -> Newcomer<FakePeer> { app.newcomer(shape, true) };
    for (shape, app) in shapes.into_iter().zip(&apps) {
        next.admit(resumed(app, shape), &now).unwrap();
    }
    let after = next.report(0, 0, 0).cores;
    let tenants = |cores: &[headway_host::arbiter::CoreReport]| -> Vec<_> {
        cores
            .iter()
            .map(|core| (core.core, core.app.clone()))
            .collect()
    };
    assert_eq!(tenants(&before), tenants(&after));
    assert_eq!(
        apps[0].lines.orders(0).granted().0,
        1,
        "nothing was granted anew"
    );
    let running = (0..2)
        .find(|&kthread| apps[0].running(kthread).is_some())
        .unwrap();
    let grant = apps[0].running(running).unwrap();
    apps[0].lines.line(running).leave(grant);
    apps[0].lines.app().wants.fetch_add(1, Ordering::Relaxed);
    clock.pass(&mut next, 1_000);
    clock.pass(&mut next, 1_000);
    assert!(next.allocator().cores().tenant(CoreId(0)).is_some());
    assert!((0..2).any(|kthread| apps[0].lines.orders(kthread).granted() >= grant));
}
