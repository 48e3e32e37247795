//! Which core goes to whom, step by step.

use crate::hosts::{AllQueued, NoneQueued, Toy, app, granted, settle, shenango};
use headway_policy::host::systems::{self, HostSystem, HostVisit};
use headway_policy::host::{
    Allocator, AppId, AppKind, AppShape, CoreId, HostShape, HostTopology, KthreadId, Move,
    Shenango, ShenangoRules, Tenant, Usage,
};

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

/// An application that does not leave within the bound is moved away, once. The waiting application then gets the core.
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

/// The same under the allocators that plan ahead, where a batch application's core goes to one that is guaranteed it.
#[test]
fn allocators_that_plan_move_a_kthread_away_that_refuses_to_leave() {
    struct Refused;
    impl HostVisit for Refused {
        type Output = ();
        fn visit<A: Allocator + Send + 'static>(self, system: HostSystem<A>) {
            let mut host = system.allocator;
            let batch = AppShape {
                guaranteed: 0,
                most: 1,
                kind: AppKind::Batch,
            };
            host.admit(1_000, AppId(1), batch, &[]);
            let Some(Move::Grant { core, .. }) = host.poll() else {
                panic!("{}: there is a core", system.name);
            };
            host.admit(2_000, AppId(0), app(1, 1), &[]);
            let Some(Move::Revoke { from, .. }) = host.poll() else {
                panic!("{}: the batch application is told to leave", system.name);
            };
            assert_eq!(host.next_deadline_ns(), Some(22_000), "{}", system.name);
            host.look(21_999, &NoneQueued);
            assert_eq!(host.poll(), None, "{}: it still has time", system.name);
            host.look(22_000, &NoneQueued);
            assert_eq!(host.poll(), Some(Move::Evict { core, from }));
            host.look(90_000, &NoneQueued);
            assert_eq!(host.poll(), None, "{}: it is moved once", system.name);
            host.released(91_000, core);
            let given = host.poll();
            assert!(
                matches!(given, Some(Move::Grant { to, .. }) if to.app == AppId(0)),
                "{given:?}"
            );
            host.look(200_000, &NoneQueued);
            assert_eq!(host.poll(), None, "who came after it was told nothing");
        }
    }
    let shape = HostShape::vacant(HostTopology::flat(1), 2, 5);
    for spec in ["static,evict=20us", "interval,evict=20us"] {
        systems::with(&spec.parse().unwrap(), &shape, Refused).unwrap();
    }
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

/// A latency-critical application without guarantee gets a core from batch applications as soon as it needs one, and one more whenever
/// it is congested.
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
            "hysteresis=0.09",
            "evict=100us"
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
