//! Applications whose cpuset becomes smaller while they are registered.

use crate::fakes::{Turned, host_cores, kthreads, shape};
use headway_host::arbiter::{Arbiter, UnusableCore};
use headway_policy::host::systems::{self, HostSystem, HostVisit};
use headway_policy::host::{Allocator, AppKind, HostShape, HostTopology};

const SECOND_NS: u64 = 1_000_000_000;

struct Shrinks;

impl HostVisit for Shrinks {
    type Output = ();

    fn visit<A: Allocator>(self, system: HostSystem<A>) {
        let clock = Turned::default();
        let mut arbiter = Arbiter::new(system.allocator, host_cores(2), true);
        let (app, newcomer) = kthreads(1, shape(2, 2, AppKind::Latency));
        arbiter.admit(newcomer, &|| clock.0.get()).unwrap();
        app.lines
            .app()
            .wants
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        clock.pass(&mut arbiter, SECOND_NS);
        let granted = (0..2).find(|&kthread| app.running(kthread).is_some());
        let kthread = granted.expect("it has a core");
        let core = app.mask(kthread)[0];
        let mut look = || {
            clock.pass(&mut arbiter, SECOND_NS);
            let now_ns = clock.0.get();
            let report = arbiter.report(now_ns, now_ns, 0);
            (
                arbiter.take_unusable(),
                report.apps[0].unusable_cores.clone(),
            )
        };
        assert_eq!(look(), (vec![], vec![]));
        let moved_to = |cores: Vec<usize>| {
            let mut process = app.process.lock().unwrap();
            process.threads.insert(app.tid(kthread), cores);
        };
        moved_to(vec![0]);
        let name = "app-1".to_owned();
        let told = UnusableCore { app: name, core };
        assert_eq!(look(), (vec![told], vec![core]));
        // It stays in the status, and is told once.
        assert_eq!(look(), (vec![], vec![core]));
        moved_to(vec![core]);
        assert_eq!(look(), (vec![], vec![]));
        moved_to(vec![0]);
        assert_eq!(look(), (vec![], vec![core]));
    }
}

#[test]
fn a_core_that_its_threads_may_not_use_is_told_once_and_listed() {
    let shape = HostShape::vacant(HostTopology::flat(2), 2, 1);
    let policy = "static".parse().unwrap();
    systems::with(&policy, &shape, Shrinks).unwrap();
}
