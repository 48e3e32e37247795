//! Jobs that are suspended, the worker that resumes them, and the rescuer that sends them home.

use headway_sync::job_holder::{FoundJob, JobHolder, TakenJob};
use headway_sync::look_alert::LookAlert;
use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use super::bounded;

/// A job that a worker suspended in a lock's section, in what a worker, the rescuer and the job's own thread do with it. The own thread stands for a donor: it is
/// ordered to run the job, which ends its turn there.
struct SuspendedJob {
    holder: JobHolder,
    /// Turns that the job had. Two that touch it at once are reported.
    turns: UnsafeCell<u32>,
    /// The order to the own thread, which it takes back as the turn ends.
    runs_at_home: AtomicBool,
    ordered: Mutex<bool>,
    order: Condvar,
}

impl SuspendedJob {
    fn new() -> Arc<Self> {
        Arc::new(SuspendedJob {
            holder: JobHolder::default(),
            turns: UnsafeCell::new(0),
            runs_at_home: AtomicBool::new(false),
            ordered: Mutex::new(false),
            order: Condvar::new(),
        })
    }

    fn turn(&self) {
        self.turns.with_mut(|turns| increment(turns));
    }

    fn go_home(&self) {
        self.runs_at_home.store(true, Ordering::Release);
        *self.ordered.lock().unwrap() = true;
        self.order.notify_one();
    }

    fn is_at_home(&self) -> bool {
        self.runs_at_home.load(Ordering::Acquire)
    }

    /// The donor: one turn, if it is ever ordered to run.
    fn donate(&self) {
        let mut ordered = self.ordered.lock().unwrap();
        while !*ordered {
            ordered = self.order.wait(ordered).unwrap();
        }
        drop(ordered);
        if self.is_at_home() {
            self.turn();
            self.runs_at_home.store(false, Ordering::Release);
        }
    }

    /// The end of the model: a donor that was never ordered to run ends.
    fn dismiss(&self) {
        *self.ordered.lock().unwrap() = true;
        self.order.notify_one();
    }

    /// A look of the rescuer's.
    fn rescue(&self) -> bool {
        let Some(taken) = self.holder.take_to_send() else {
            return false;
        };
        let goes = taken == TakenJob::Suspended;
        if goes {
            self.go_home();
        } else {
            self.is_at_home();
        }
        self.holder.is_home();
        goes
    }

    /// What the token's holder does: takes the job up until it is its own.
    fn resume(&self) {
        loop {
            match self.holder.take_up() {
                FoundJob::Ready => return self.turn(),
                FoundJob::SentHome if !self.is_at_home() => return self.turn(),
                FoundJob::SentHome => self.holder.is_home(),
                FoundJob::OnItsWay => {}
            }
            thread::yield_now();
        }
    }
}

#[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
fn increment(value: *mut u32) {
    // SAFETY: loom reports it if somebody else looks meanwhile.
    unsafe { *value += 1 };
}

/// The worker that suspends a job passes its token to another, which resumes it, while the rescuer looks twice: each turn has the job alone, and it had one at home only if it was sent.
#[test]
fn a_job_is_resumed_by_a_worker_or_at_home_never_by_both() {
    bounded(2).check(|| {
        let job = SuspendedJob::new();
        let (at_home, rescued) = (Arc::clone(&job), Arc::clone(&job));
        let donor = thread::spawn(move || at_home.donate());
        let rescuer =
            thread::spawn(move || u32::from(rescued.rescue()) + u32::from(rescued.rescue()));
        job.turn();
        job.holder.may_go_home();
        job.resume();
        let sent = rescuer.join().unwrap();
        job.dismiss();
        donor.join().unwrap();
        let turns = job.turns.with(|turns| read(turns));
        assert!(sent <= 1);
        assert_eq!(turns, 2 + sent);
    });
}

/// A job that its own worker sends home, as by a wish of its own, comes back once its turn there is over.
#[test]
fn a_job_that_wished_to_go_home_comes_back() {
    bounded(2).check(|| {
        let job = SuspendedJob::new();
        let (at_home, rescued) = (Arc::clone(&job), Arc::clone(&job));
        let donor = thread::spawn(move || at_home.donate());
        let rescuer = thread::spawn(move || rescued.rescue());
        job.go_home();
        job.holder.is_home();
        job.resume();
        assert!(!rescuer.join().unwrap());
        donor.join().unwrap();
        assert_eq!(job.turns.with(|turns| read(turns)), 2);
    });
}

/// A thread that looks rarely is awake for a job that is suspended while it makes up its mind. It sleeps for good here: a model in which nobody wakes it does not end.
#[test]
fn the_rescuer_does_not_sleep_over_a_suspended_job() {
    bounded(3).check(|| {
        let alert = Arc::new(LookAlert::default());
        let waiting = Arc::new((Mutex::new(()), Condvar::new()));
        let (of_worker, wakes) = (Arc::clone(&alert), Arc::clone(&waiting));
        let worker = thread::spawn(move || {
            for _ in 0..2 {
                if of_worker.note() {
                    drop(wakes.0.lock().unwrap());
                    wakes.1.notify_all();
                }
            }
        });
        while !alert.take() {
            alert.look_often(false);
            let lock = waiting.0.lock().unwrap();
            if !alert.must_look() {
                drop(waiting.1.wait(lock).unwrap());
            }
            alert.look_often(true);
        }
        worker.join().unwrap();
    });
}

#[expect(unsafe_code, reason = "loom's cells are looked at through pointers")]
fn read(value: *const u32) -> u32 {
    // SAFETY: as above.
    unsafe { *value }
}
