//! The loop of a pool's thread.

use std::io;
use std::sync::Arc;

use headway_machine::thread::{fork, give_way, pin_current};
use headway_policy::ClassId;
use headway_sync::thread::{self, JoinHandle};

use crate::blocking;
use crate::chosen::ChosenJob;
use crate::core::{JobEnd, PoolCore, PoolPhase};
use crate::current;
use crate::decisions::Chosen;
use crate::idle_wait::IdleWait;
use crate::job::{RunEnd, Runnable, drop_quietly};
use crate::shared::SharedPool;
use crate::slice::JobSlices;
use crate::turn::TurnEnd;

/// Starts the thread of this place.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn start(shared: &Arc<SharedPool>, place: usize) -> io::Result<JoinHandle<()>> {
    let shared = Arc::clone(shared);
    let name = format!("{}-{place}", shared.name);
    thread::Builder::new().name(name).spawn(move || {
        if let Some(core) = shared.pin_of(place) {
            // Checked when the pool was built; a mask that was narrowed since leaves the thread where it may be.
            let _ = pin_current(core);
        }
        if shared.nice > 0 {
            // A thread may always be nicer than it is; in a process that is nicer already it stays so.
            let _ = give_way(shared.nice);
        }
        fork::is_worker();
        current::join(shared.number(), Arc::clone(&shared.over));
        blocking::join(Arc::downgrade(&shared));
        work(&shared, place);
    })
}

/// A slice that is over, before the pool has heard of it.
enum Report {
    Ended {
        end: JobEnd,
        job: Arc<dyn Runnable>,
    },
    Interrupted {
        class: ClassId,
        chosen: Chosen,
        job: Arc<dyn Runnable>,
        attained_ns: u64,
        /// Whether it ran here until then.
        ran_here: bool,
    },
    /// Ended elsewhere, and counted: its token is left.
    Counted {
        chosen: Chosen,
        job: Arc<dyn Runnable>,
        cpu_ns: u64,
    },
}

impl Report {
    /// Tells the pool. Returns a job whose turns are over, and how it ended.
    fn count(self, core: &mut PoolCore, now_ns: u64) -> Option<(RunEnd, Arc<dyn Runnable>)> {
        match self {
            Self::Ended { end, job } => {
                if end.chosen.is_none() {
                    core.threads.ended_blocked();
                }
                core.ended(now_ns, end, &job);
                Some((end.ran, job))
            }
            Self::Counted {
                chosen,
                job,
                cpu_ns,
            } => {
                core.leave_worker(now_ns, chosen, cpu_ns);
                Some((RunEnd::Pending, job))
            }
            Self::Interrupted {
                class,
                chosen,
                job,
                attained_ns,
                ran_here,
            } => {
                if ran_here {
                    core.interrupted(class);
                }
                core.yielded(now_ns, chosen, attained_ns, job);
                None
            }
        }
    }
}

/// Runs one job after another until the pool has ended.
pub(crate) fn work(shared: &Arc<SharedPool>, place: usize) {
    let mut slices = JobSlices::new(shared);
    let idle = IdleWait::of_current(shared.poller());
    let mut report = None;
    let mut now_ns = shared.clock.now_ns();
    loop {
        if let Some(poller) = idle.poller() {
            slices.in_turn(|| poller.poll());
        }
        let mut core = shared.core.lock();
        core.threads.awake(place);
        let ended = report
            .take()
            .and_then(|report: Report| report.count(&mut core, now_ns));
        let only = core.threads.worker_of(place);
        let next = core.take(now_ns, only);
        let stays = next.is_some()
            || core.phase != PoolPhase::Over && core.threads.park(place, idle.handle());
        let mut is_last = false;
        if !stays {
            core.threads.leave(place);
            is_last = core.phase == PoolPhase::Over && core.threads.len() == 0;
        }
        // A turn like a job's: wakers and destructors of the program may wait for a lock that a suspended job holds.
        slices.in_turn(|| {
            shared.settle(core);
            // Counted first, told then: who has the result finds it in the counts.
            if let Some((ran, job)) = ended {
                if ran != RunEnd::Pending {
                    job.publish();
                }
                // Where nobody awaits the result, its destructor runs here.
                drop_quietly(job);
            }
        });
        match next {
            Some(assignment) => {
                let (ended_ns, told) = run(shared, &mut slices, assignment);
                (now_ns, report) = (ended_ns, Some(told));
            }
            None if stays => {
                if !slices.make_ready(shared) {
                    idle.wait();
                }
                now_ns = shared.clock.now_ns();
            }
            None => {
                if is_last && let Some(rescue) = shared.slices.rescue() {
                    rescue.end();
                }
                return;
            }
        }
    }
}

/// Starts the thread that looks after the workers, where they run jobs that own a thread's state.
///
/// # Errors
/// The system refuses a thread.
pub(crate) fn start_rescue(shared: &Arc<SharedPool>) -> io::Result<()> {
    let Some(rescue) = shared.slices.rescue().cloned() else {
        return Ok(());
    };
    let (name, pool) = (format!("{}-rescue", shared.name), Arc::clone(shared));
    let builder = thread::Builder::new().name(name);
    shared.keep(builder.spawn(move || rescue.run(&pool))?);
    Ok(())
}

/// Runs the job to its end, or to the end of its slice. Returns when that was.
#[inline]
fn run(
    shared: &Arc<SharedPool>,
    slices: &mut JobSlices,
    mut assignment: ChosenJob,
) -> (u64, Report) {
    let from_ns = shared.clock.now_ns();
    assignment.from_ns = from_ns;
    let (chosen, class, before_ns) = (assignment.chosen, assignment.class, assignment.attained_ns);
    let start = assignment.start();
    let ended = slices.run(shared, assignment);
    // A job that forked goes on in the child until here.
    fork::end_child();
    let now_ns = shared.clock.now_ns();
    slices.end_run(shared, start, now_ns);
    let ran_ns = now_ns.saturating_sub(from_ns);
    let attained_ns = (before_ns + ran_ns).max(1);
    let report = match ended {
        TurnEnd::Ended {
            ran,
            job,
            keeps_worker,
        } => Report::Ended {
            end: JobEnd {
                class,
                ran,
                cpu_ns: attained_ns,
                chosen: keeps_worker.then_some(chosen),
            },
            job,
        },
        TurnEnd::Interrupted(job) => Report::Interrupted {
            class,
            chosen,
            job,
            attained_ns,
            ran_here: true,
        },
        TurnEnd::AtHome(job) => {
            thread::yield_now();
            Report::Interrupted {
                class,
                chosen,
                job,
                attained_ns: before_ns,
                ran_here: false,
            }
        }
        TurnEnd::EndedAtHome(job) => Report::Counted {
            chosen,
            job,
            cpu_ns: before_ns.max(1),
        },
    };
    (now_ns, report)
}
