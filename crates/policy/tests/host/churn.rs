//! Applications that come and go.

use crate::hosts::{AllQueued, app, granted, settle, shenango};
use headway_policy::host::systems::{self, HostSystem, HostVisit, NAMES};
use headway_policy::host::{
    Allocator, AppId, CoreId, HeldCore, HostShape, HostTopology, KthreadId, Move, Shenango,
    ShenangoRules, Tenant,
};

/// Every application that wants a core gets its turn, independent of earlier arrivals and departures.
#[test]
fn nobody_starves_where_applications_come_and_go() {
    let vacant = HostShape::vacant(HostTopology::flat(1), 4, 1);
    let mut host = Shenango::new(&vacant, ShenangoRules::default());
    let mut look = 0;
    for came in 0..12_u16 {
        let (newcomer, leaver) = (AppId(came % 4), AppId((came + 2) % 4));
        if came > 1 {
            host.retire(look * 5_000, leaver);
        }
        host.admit(look * 5_000, newcomer, app(0, 1), &[]);
        let mut turns = [0; 4];
        for _ in 0..40 {
            look += 1;
            for id in (0..4).map(AppId) {
                if !host.cores().shape(id).is_vacant() {
                    host.arrived(look * 5_000 - 1, id);
                }
            }
            settle(&mut host);
            host.look(look * 5_000, &AllQueued);
            settle(&mut host);
            turns[host.cores().tenant(CoreId(0)).unwrap().app.index()] += 1;
        }
        for (index, turns) in turns.into_iter().enumerate() {
            let is_there = !host.cores().shape(AppId(index as u16)).is_vacant();
            assert_eq!(turns > 0, is_there, "application {index} had {turns} of 40");
        }
    }
}

/// The cores of an application that dies while it waits for one, and is waited for, go on to the others.
#[test]
fn who_was_promised_a_core_of_the_dead_has_it_and_promises_to_the_dead_lapse() {
    let mut host = shenango(HostTopology::flat(2), vec![app(1, 2), app(0, 2), app(1, 1)]);
    host.arrived(0, AppId(1));
    let first = granted(&mut host);
    host.look(5_000, &AllQueued);
    host.look(10_000, &AllQueued);
    let second = granted(&mut host);
    host.arrived(11_000, AppId(0));
    host.arrived(11_000, AppId(2));
    let revoked: Vec<Move> = std::iter::from_fn(|| host.poll()).collect();
    assert_eq!(
        revoked.len(),
        2,
        "both are entitled to a core of the other's"
    );
    host.retire(12_000, AppId(0));
    assert_eq!(host.poll(), None, "nothing is free yet");
    host.retire(13_000, AppId(1));
    let Some(Move::Grant { to, core }) = host.poll() else {
        panic!("application 2 was promised one");
    };
    assert_eq!(to.app, AppId(2));
    assert!(core == first || core == second);
    assert_eq!(host.poll(), None, "nobody wants the other");
    assert_eq!(host.cores().idle().len(), 1);
}

/// An arbiter that is started anew takes over who has which core.
#[test]
fn cores_that_are_held_already_stay_where_they_are() {
    for name in NAMES {
        struct Adopts;
        impl HostVisit for Adopts {
            type Output = ();
            fn visit<A: Allocator>(self, mut system: HostSystem<A>) {
                let host = &mut system.allocator;
                let held = |core, kthread| HeldCore {
                    core: CoreId(core),
                    kthread: KthreadId(kthread),
                };
                host.admit(0, AppId(1), app(1, 2), &[held(2, 1)]);
                host.admit(
                    0,
                    AppId(0),
                    app(1, 3),
                    &[held(2, 0), held(0, 2), held(9, 1)],
                );
                assert_eq!(host.poll(), None, "{}: each has what it needs", system.name);
                let tenant = |app, kthread| {
                    Some(Tenant {
                        app: AppId(app),
                        kthread: KthreadId(kthread),
                    })
                };
                let cores = host.cores();
                let tenants = [0, 1, 2].map(|core| cores.tenant(CoreId(core)));
                assert_eq!(tenants, [tenant(0, 2), None, tenant(1, 1)]);
            }
        }
        let vacant = HostShape::vacant(HostTopology::flat(3), 2, 1);
        systems::with(&name.parse().unwrap(), &vacant, Adopts).unwrap();
    }
}
