//! The messages between a kthread and its arbiter by their lines, in every interleaving.

use headway_kthread::{Grant, KthreadLine, OrderLine};
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, AtomicUsize, Ordering, fence};
use loom::thread;

#[derive(Default)]
struct Shared {
    line: KthreadLine,
    orders: OrderLine,
    awake: AtomicUsize,
    work: AtomicU64,
    wants: AtomicU64,
}

/// A kthread parks while work comes: it finds the work, or whoever brought it asks for a core.
#[test]
fn work_that_comes_while_a_kthread_parks_is_not_forgotten() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        shared.orders.grant_as(0, Grant(1));
        shared.awake.store(1, Ordering::Relaxed);
        let brings = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.work.store(1, Ordering::Relaxed);
                fence(Ordering::SeqCst);
                if shared.awake.load(Ordering::Relaxed) == 0 {
                    shared.wants.fetch_add(1, Ordering::AcqRel);
                }
            })
        };
        shared.awake.fetch_sub(1, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        let found = shared.work.load(Ordering::Relaxed) == 1;
        if !found {
            shared.line.leave(Grant(1));
        }
        brings.join().unwrap();
        let asked = shared.wants.load(Ordering::Acquire) == 1;
        assert!(found || asked, "the work waits, and nobody knows");
        assert!(
            found || shared.line.left() == Grant(1),
            "the core is given back"
        );
    });
}

/// An arbiter takes a grant back while the kthread's thread comes: if it saw no thread, and gave the core away at once, the kthread does not run.
#[test]
fn a_grant_that_is_taken_back_before_the_thread_came_is_not_used() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        shared.orders.grant_as(0, Grant(1));
        let comes = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.line.set_tid(7);
                fence(Ordering::SeqCst);
                shared.orders.granted() == Grant(1) && !shared.orders.is_revoked(Grant(1))
            })
        };
        shared.orders.revoke_to(Grant(1));
        fence(Ordering::SeqCst);
        let gave_away = shared.line.tid().is_none();
        let runs = comes.join().unwrap();
        assert!(!(gave_away && runs), "two run on one core");
    });
}

/// A kthread that sees a grant sees its core. An order to leave the previous core does not affect the new one.
#[test]
fn a_grant_comes_with_its_core_and_without_the_last_order() {
    loom::model(|| {
        let shared = Arc::new(Shared::default());
        shared.orders.grant_as(3, Grant(1));
        let arbiter = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                shared.orders.revoke_to(Grant(1));
                if shared.line.left() == Grant(1) {
                    shared.orders.grant_as(5, Grant(2));
                }
            })
        };
        if shared.orders.is_revoked(Grant(1)) {
            shared.line.leave(Grant(1));
        }
        if shared.orders.granted() == Grant(2) {
            assert_eq!(shared.orders.core(), 5);
            assert!(!shared.orders.is_revoked(Grant(2)));
        }
        arbiter.join().unwrap();
    });
}
