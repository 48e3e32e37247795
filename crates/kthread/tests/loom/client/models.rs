//! A kthread enters, gives its core back, loses it, and sleeps, while its arbiter works, dies, or the application ends.

use super::links::{ClientOptions, KthreadState, Links};
use crate::futex;
use crate::memory::SharedLines;
use headway_kthread::Grant;
use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::thread;
use nix::sched::CpuSet;
use std::fs::File;

/// Few bugs need more than two preemptive switches (Musuvathi and Qadeer, PLDI 2007).
fn bounded(model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(model);
}

/// An application with one kthread, which has a core by the first grant.
struct Hosted {
    links: Links,
    work: AtomicBool,
    taken: AtomicBool,
    core: UnsafeCell<()>,
}

#[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
// SAFETY: loom reports a concurrent access to the cell.
unsafe impl Sync for Hosted {}
#[expect(unsafe_code, reason = "as above")]
// SAFETY: as above.
unsafe impl Send for Hosted {}

const FIRST: Grant = Grant(1);

impl Hosted {
    fn new() -> Arc<Hosted> {
        let descriptor = || File::open("/dev/null").unwrap().into();
        let (lines, options) = (SharedLines::new(1), ClientOptions::new("kv", 1));
        let links = Links::new(
            lines,
            descriptor(),
            descriptor(),
            None,
            options,
            CpuSet::new(),
        );
        links.lines.orders(0).grant_as(0, FIRST);
        assert_eq!(links.come(0), FIRST);
        Arc::new(Hosted {
            links,
            work: AtomicBool::new(false),
            taken: AtomicBool::new(false),
            core: UnsafeCell::new(()),
        })
    }

    /// Runs on the core: loom reports two that do so at once.
    fn run(&self) {
        self.core.with_mut(|_| ());
    }

    /// The kthread looks for work, and gives its core back while there is none.
    fn take_work(&self) {
        let finds_nothing = || !self.work.load(Ordering::Acquire);
        let mut grant = FIRST;
        while finds_nothing() {
            grant = self.links.leave(0, grant, &mut || finds_nothing());
        }
        self.taken.store(true, Ordering::Release);
    }

    fn bring_work(&self) {
        self.work.store(true, Ordering::Release);
        self.links.notify();
    }

    fn is_awake(&self) -> bool {
        self.links.links[0].is(KthreadState::Awake)
    }

    fn has_left(&self, grant: Grant) -> bool {
        self.links.lines.line(0).left() >= grant
    }

    fn grant(&self, grant: Grant) {
        let orders = self.links.lines.orders(0);
        orders.grant_as(0, grant);
        futex::wake(orders.wakes());
    }

    fn wants(&self) -> u64 {
        self.links.lines.app().wants.load(Ordering::Acquire)
    }
}

/// Runs `body` as the kthread.
fn kthread(hosted: &Arc<Hosted>, body: fn(&Hosted)) -> thread::JoinHandle<()> {
    let hosted = Arc::clone(hosted);
    thread::spawn(move || body(&hosted))
}

#[test]
fn work_that_comes_while_a_kthread_gives_its_core_back_gets_a_core() {
    bounded(|| {
        let hosted = Hosted::new();
        let heard = hosted.wants();
        let kthread = kthread(&hosted, Hosted::take_work);
        hosted.bring_work();
        // The arbiter: a kthread that has left gets a core once its application wants one.
        let mut granted = false;
        while !hosted.taken.load(Ordering::Acquire) {
            if !granted && hosted.has_left(FIRST) && hosted.wants() != heard {
                hosted.grant(Grant(2));
                granted = true;
            }
            thread::yield_now();
        }
        kthread.join().unwrap();
        assert!(hosted.is_awake());
    });
}

/// The order to leave is heeded by the signal's handler or by the kthread itself, and no core has two at once.
#[test]
fn a_core_that_is_taken_is_left_before_another_gets_it() {
    const LAST: Grant = Grant(3);
    bounded(|| {
        let hosted = Hosted::new();
        let kthread = kthread(&hosted, |hosted| {
            let mut grant = FIRST;
            while grant != LAST {
                hosted.run();
                hosted.links.stop_here(0);
                if hosted.links.lines.orders(0).is_revoked(grant) {
                    grant = hosted.links.leave(0, grant, &mut || true);
                }
                thread::yield_now();
            }
            hosted.run();
        });
        for number in FIRST.0..LAST.0 {
            hosted.links.lines.orders(0).revoke_to(Grant(number));
            while !hosted.has_left(Grant(number)) {
                thread::yield_now();
            }
            hosted.run();
            hosted.grant(Grant(number + 1));
        }
        kthread.join().unwrap();
        assert!(hosted.is_awake());
    });
}

#[test]
fn a_kthread_that_a_signal_stops_goes_on_when_its_daemon_dies() {
    bounded(|| {
        let hosted = Hosted::new();
        hosted.links.lines.orders(0).revoke_to(FIRST);
        let kthread = kthread(&hosted, |hosted| hosted.links.stop_here(0));
        hosted.links.set_alone(true);
        kthread.join().unwrap();
        assert!(hosted.is_awake());
    });
}

#[test]
fn work_that_comes_while_the_daemon_dies_is_done() {
    bounded(|| {
        let hosted = Hosted::new();
        let kthread = kthread(&hosted, Hosted::take_work);
        hosted.bring_work();
        hosted.links.set_alone(true);
        kthread.join().unwrap();
        assert!(hosted.is_awake());
    });
}

/// The daemon before ended in order, so the kthread sleeps on a core of its own.
#[test]
fn a_kthread_without_work_gives_its_core_to_the_next_daemon() {
    bounded(|| {
        let hosted = Hosted::new();
        hosted.links.set_alone(true);
        hosted.links.set_free();
        let granted = hosted.links.lines.orders(0).granted();
        let kthread = kthread(&hosted, |hosted| {
            let mut grant = FIRST;
            while !hosted.links.is_closed() {
                grant = hosted.links.leave(0, grant, &mut || true);
            }
        });
        hosted.links.set_alone(false);
        while !hosted.has_left(granted) {
            thread::yield_now();
        }
        hosted.links.close();
        kthread.join().unwrap();
    });
}

#[test]
fn a_kthread_that_sleeps_goes_when_its_application_ends() {
    bounded(|| {
        let hosted = Hosted::new();
        let kthread = kthread(&hosted, |hosted| {
            hosted.links.leave(0, FIRST, &mut || true);
        });
        hosted.links.close();
        kthread.join().unwrap();
    });
}
