//! Fibers, and the ways to make them yield.
//!
//! A [`Fiber`] runs one job after another on a stack of its own ([`Stacks`]), and can be suspended in the middle of a job. It yields by a call
//! ([`yield_now`]), or when a probe in its code finds a request to yield. Headway's compiler pass inserts probes; a programmer places them by
//! hand ([`checkpoint`]). A probe reads its thread's own cache line. The thread is [`Attached`] and hands out [`YieldFlag`]s, by which another thread
//! asks it to yield; or its probes read the clock ([`Attached::self_timed`]).
//!
//! A [`Strand`] is a fiber for schedulers whose fibers switch to one another directly, instead of back to the scheduler: user-level threads.
//!
//! [`NoPreempt`] marks sections that must not be interrupted (a lock is held, the allocator runs). A request that comes inside takes effect at
//! the section's end.
//!
//! The layout of the words that probes touch is a contract with the compiler pass and with C code: [`abi`].

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
compile_error!(
    "headway-fiber switches stacks and reads thread-local words as x86-64 Linux lays them out"
);

pub mod abi;
mod alive;
mod attached;
mod checkpoint;
mod context;
mod control;
pub mod costs;
mod credentials;
mod donor;
mod donor_threads;
mod fiber;
mod fs;
mod handover;
mod held;
mod kept;
mod kernel_action;
mod kernel_credentials;
mod kernel_mask;
mod local;
mod mapping;
mod mechanism;
#[cfg(loom)]
pub mod model;
mod mutex;
mod no_preempt;
mod overflow;
mod owned_thread;
mod present_line;
mod retired;
mod sanitizer;
mod saved;
mod sections;
mod send_fiber;
mod signal;
mod signal_frames;
mod signal_handler;
mod signal_mask;
mod slice_timer;
mod slow;
mod stack;
mod stack_copy;
mod strand;
mod stub;
mod suspects;
mod switch;
mod timed;
mod turn_watch;
mod work_meter;
mod yielding;

pub use alive::{alive_ns, set_alive_ns};
pub use attached::{Attached, YieldFlag};
pub use checkpoint::{CheckpointEvery, checkpoint, checkpoint_at};
pub use fiber::{Fiber, Turn, abandoned};
pub use held::{Held, Section};
pub use mechanism::{Asker, ByClock, ByFlag, Mechanism, Preempter, Unavailable, UnknownMechanism};
pub use mutex::{FiberMutex, FiberMutexGuard};
pub use no_preempt::{NoPreempt, NoPreemptAlloc, shield, unshield};
pub use overflow::{LabelName, report_overflows, report_thread_overflows};
pub use send_fiber::SendFiber;
pub use signal::BySignal;
pub use signal_handler::suspend_interrupted;
pub use slice_timer::{NoTimer, TimerCost};
pub use slow::{may_stop_here, may_suspend_here, say_long};
pub use stack::{MAX_STACK_BYTES, MIN_STACK_BYTES, Stack, StackCache, Stacks};
pub use stack_copy::{StackCopy, read as read_own_memory};
pub use strand::{LeftStrand, Strand, StrandKind};
pub use suspects::{LateRun, LateRuns, Suspects};
pub use switch::{in_fiber, note_held, pauses, suspensions};
pub use timed::RenewSlice;
pub use turn_watch::{ReadsOwnTime, TurnWatch, TurnsSeen, WorkerTurns};
pub use work_meter::WorkMeter;
pub use yielding::{on_own_thread, yield_now};
