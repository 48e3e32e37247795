//! Threads attached to preemption, and the flags by which other threads ask them to yield.
#![expect(unsafe_code, reason = "flags point into another thread's line")]

use std::cell::{Cell, OnceCell};
use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};

use headway_machine::Clock;
use headway_machine::thread::fork;
use headway_sync::{Guarded, MutexGuard};

use crate::abi::words::{NEVER, SELF_TIMED};
use crate::kept::adopt_control_words;
use crate::local;
use crate::overflow::AlternateStack;
use crate::present_line::PresentLine;
use crate::retired::{flag_dropped, flag_made};
use crate::send_fiber::SendFiber;
use crate::slice_timer::{NoTimer, SliceTimer};
use crate::timed::{RenewSlice, give_clock};

/// A thread attached to preemption: it owns its line, and states its current assignment there.
///
/// Dropping it waits until all [`YieldFlag`]s of the thread are dropped, since they point into the thread's memory. So the thread itself must not
/// keep a flag longer. (A thread that leaks its `Attached` waits when it ends, unless it is the process's first.)
#[derive(Debug)]
pub struct Attached {
    flags: Arc<FlagCount>,
    /// Whether the thread's probes read the clock in a slice.
    self_timed: Cell<bool>,
    /// When the present [slice](Self::begin_slice) ends, a reading of the clock.
    slice_end: Cell<u64>,
    /// Raises the flag at the end of a long slice.
    timer: OnceCell<SliceTimer>,
    /// The thread's signal stack, for the report of an overflow and the timer's signal.
    _signals: AlternateStack,
    /// Keeps the value on its thread.
    bound: PhantomData<*mut ()>,
}

impl Attached {
    /// Attaches the calling thread.
    ///
    /// # Panics
    /// The thread is attached already.
    #[expect(
        clippy::new_without_default,
        reason = "it does something to the thread, once"
    )]
    pub fn new() -> Attached {
        THREAD.with(|thread| {
            assert!(
                !thread.attached.replace(true),
                "the thread takes part already"
            );
            let attached = Attached {
                flags: Arc::clone(&thread.flags),
                self_timed: Cell::new(false),
                slice_end: Cell::new(NEVER),
                timer: OnceCell::new(),
                _signals: AlternateStack::ensure(),
                bound: PhantomData,
            };
            adopt_control_words();
            watch_forks();
            attached.flags.worker.set_line(local::shared_line());
            local::set_worker(attached.flags.worker);
            attached.self_timed(false);
            attached.set_next_writes([local::shared_line().cast(); 2]);
            attached.set_deadline(NEVER);
            attached
                .flags
                .worker
                .set_renewal(None, std::ptr::null_mut());
            attached.answer_sections(false);
            attached.set_clock(None);
            attached.begin(0);
            attached
        })
    }

    /// A handle by which other threads ask this thread to yield.
    pub fn flag(&self) -> YieldFlag {
        let mut outstanding = self.flags.outstanding();
        if *outstanding == 0 {
            // A fiber that ran here last may be gone, with its line.
            self.flags.worker.set_line(local::shared_line());
        }
        YieldFlag::counted(&mut outstanding, &self.flags)
    }

    /// Starts an assignment: a request's first turn or a later one. Requests to yield for earlier assignments have no effect from now on.
    /// No-preempt sections that were left open are closed.
    ///
    /// `epoch` is unique to this assignment, neither 0 nor `u64::MAX`, as from a counter. The thread that raises the flag needs it: publish it
    /// after this call.
    #[inline]
    pub fn begin(&self, epoch: u64) {
        self.flags.worker.set_line(local::shared_line());
        self.begin_here(epoch);
    }

    /// As [`begin`](Self::begin), of an assignment that runs on this fiber. Where the fiber owns a [thread's state](crate::Stacks::of_donors) it has a line of its own:
    /// a request that comes between [`begin`](Self::begin) and the fiber's turn would be lost.
    #[inline]
    pub fn begin_on<J>(&self, fiber: &SendFiber<J>, epoch: u64) {
        self.flags.worker.set_line(fiber.line());
        self.begin_here(epoch);
    }

    #[inline(always)]
    fn begin_here(&self, epoch: u64) {
        local::set_epoch(epoch);
        local::set_no_preempt(0);
        local::set_deferred(0);
        if local::granted_message() != 0 {
            local::set_granted_message(0);
        }
        let (asked, resting) = (local::asked(), local::resting());
        if asked != resting && asked != epoch {
            local::answer(asked, resting);
        }
    }

    /// Sets whether this thread's probes read the clock, instead of waiting for a request. Each probe calls into the runtime then, and of those that lie
    /// close together every second to 64th reads, so that between two readings a sixteenth of the time to the deadline passes, but at least some 0.2 µs. The
    /// thread yields when the [deadline](Attached::set_deadline) has passed. Other threads can still ask it to yield.
    pub fn self_timed(&self, on: bool) {
        self.self_timed.set(on);
        let resting = if on { SELF_TIMED } else { 0 };
        local::set_resting(resting);
        while !local::answer(local::asked(), resting) {}
    }

    /// Lets a timer of the kernel's raise the flag of a thread that is self-timed already at the end of a long [slice](Self::begin_slice), by a signal
    /// (`SIGURG`) whose handler only stores to the thread's line. Until then the flag is down, and probes do not call. What a slice must last to be worth the signal is
    /// [measured](crate::TimerCost::worth_ns). In another clock's time the next [`checkpoint_at`](crate::checkpoint_at) raises it.
    ///
    /// System calls of the handler may then end with `EINTR`: those that [`SA_RESTART`](https://man7.org/linux/man-pages/man7/signal.7.html) does not
    /// restart, such as `poll` and `nanosleep`.
    ///
    /// # Errors
    /// [`NoTimer`]: none can be had. Probes read the clock, as without this call.
    pub fn raise_by_timer(&self, clock: Clock) -> Result<(), NoTimer> {
        if self.self_timed.get() && self.timer.get().is_none() {
            let _ = self.timer.set(SliceTimer::new(clock)?);
        }
        Ok(())
    }

    /// Begins a self-timed thread's slice of `ticks` from `now` on, a reading of its clock: it yields once they have passed. Its flag may be down for a
    /// part of them, so whoever sees that a slice is over asks whether it [goes on](Self::slice_goes_on).
    #[inline]
    pub fn begin_slice(&self, now: u64, ticks: u64) {
        if self.self_timed.get() && local::resting() != SELF_TIMED {
            local::rest_at(SELF_TIMED);
        }
        self.slice_end.set(now.saturating_add(ticks));
        // Most requests end soon. One that goes on for as long as a timer must be set to be worth its cost, goes on for as long again.
        let first_look = match self.timer.get() {
            Some(timer) if ticks >= 2 * timer.worth_ticks() => timer.worth_ticks(),
            _ => ticks,
        };
        local::set_deadline(now.saturating_add(first_look));
    }

    /// What runs on this thread from now on has no slice: the flag is down until another begins, or another thread asks.
    #[inline]
    pub fn no_slice(&self) {
        if local::resting() != 0 {
            local::rest_at(0);
        }
        self.slice_end.set(NEVER);
        local::set_deadline(NEVER);
    }

    /// The thread yielded at `now`, a reading of its clock. Whether the present slice goes on still: only the part of it is over in which probes read the
    /// clock. If so, the timer is set.
    #[inline]
    pub fn slice_goes_on(&self, now: u64) -> bool {
        let end = self.slice_end.get();
        // A request of another thread leaves the deadline as it is.
        if now >= end || local::deadline() != NEVER {
            return false;
        }
        self.extend_slice(now, end - now);
        true
    }

    /// As [`begin_slice`](Self::begin_slice), for the code that ran until now and goes on.
    #[inline]
    pub fn extend_slice(&self, now: u64, ticks: u64) {
        let end = now.saturating_add(ticks);
        self.slice_end.set(end);
        local::move_deadline(end);
        if let Some(timer) = self.timer.get()
            && ticks >= timer.worth_ticks()
        {
            timer.lower_for(ticks);
        }
    }

    /// Sets when a self-timed thread yields, and a thread whose code has TSC probes: a reading of the time-stamp counter, `u64::MAX` for never.
    /// The yield resets it.
    #[inline]
    pub fn set_deadline(&self, tsc: u64) {
        local::set_deadline(tsc);
    }

    /// As [`set_deadline`](Self::set_deadline), for code that continues: its probes read the clock as often as before.
    #[inline]
    pub fn move_deadline(&self, tsc: u64) {
        local::move_deadline(tsc);
    }

    /// Sets the clock whose readings this thread's [deadlines](Self::set_deadline) are: `None`, and at first, the time-stamp counter. Probes of compiled
    /// code read that counter whatever is set here. Code in another clock's time meets [`checkpoint_at`](crate::checkpoint_at) instead.
    pub fn set_clock(&self, read: Option<fn() -> u64>) {
        give_clock(read);
    }

    /// Sets the function that decides, at the end of a self-timed slice, whether the fiber continues, and its argument. It runs on the fiber's stack,
    /// in a no-preempt section; a fiber that continues is not switched. Null for none: then each end of a slice suspends the fiber.
    ///
    /// # Safety
    /// Until another call, `data` is a valid argument of the function whenever a fiber of this thread meets a probe. The function needs less than half
    /// a page of stack.
    #[inline]
    pub unsafe fn set_renewal(&self, renew: Option<RenewSlice>, data: *mut ()) {
        self.flags.worker.set_renewal(renew, data);
    }

    /// Sets whether this thread answers a section that asks, at the end of a slice that no [function](Self::set_renewal) renews, whether it
    /// [must yield](crate::NoPreempt::must_yield): at first it does not, and the section must. On such a thread that fiber's turn ends. Whoever ran it then
    /// looks whether it [asks](crate::Fiber::asks), [answers](crate::Fiber::answer), and resumes it at once. So a section that holds something it must let
    /// go of does so only where another fiber is to run. For threads whose fibers no signal [interrupts](crate::BySignal).
    pub fn answer_sections(&self, on: bool) {
        self.flags.worker.set_answers(on);
    }

    /// The message sent [with](YieldFlag::raise_with) the request to yield that this assignment was granted; 0 for none.
    #[inline]
    pub fn granted_message(&self) -> u64 {
        local::granted_message()
    }

    /// The message of a request to yield that came for this assignment and that no probe has met; `None` without one. A later request for the same
    /// assignment may have replaced the message.
    #[inline]
    pub fn unanswered_message(&self) -> Option<u64> {
        let asked = local::asked();
        let waits = asked != local::resting() && asked == local::epoch();
        waits.then(local::message)
    }

    /// Sets two addresses that this thread writes to after another thread made it yield, such as its report to that thread. The probe begins to
    /// fetch their cache lines. Any address is allowed. They hold until the next call.
    #[inline]
    pub fn set_next_writes(&self, addresses: [*const (); 2]) {
        self.flags.worker.set_next_writes(addresses);
    }

    /// Sets an address that this thread reads after it yields, such as the ring from which it takes work. A probe that yields begins to fetch its
    /// cache line. Any address is allowed.
    #[inline]
    pub fn set_next_read(&self, address: *const ()) {
        self.flags.worker.set_next_read(address);
    }
}

impl Drop for Attached {
    fn drop(&mut self) {
        self.flags.wait();
        self.self_timed(false);
        self.begin(0);
        local::set_worker(std::ptr::null());
        // A destructor of another thread-local value may run after `THREAD` was dropped.
        let _ = THREAD.try_with(|thread| thread.attached.set(false));
    }
}

/// Asks a thread to yield. Any thread may hold it. A clone takes a lock.
#[derive(Debug)]
pub struct YieldFlag {
    flags: Arc<FlagCount>,
}

impl YieldFlag {
    fn counted(outstanding: &mut usize, flags: &Arc<FlagCount>) -> YieldFlag {
        *outstanding += 1;
        flag_made();
        YieldFlag {
            flags: Arc::clone(flags),
        }
    }

    /// Asks the assignment of that epoch to yield: one store to the thread's line. It has no effect after that assignment.
    ///
    /// A request replaces an earlier one that the thread has not noticed yet, so only one thread at a time may ask.
    #[inline]
    pub fn raise(&self, epoch: u64) {
        self.raise_with(epoch, 0);
    }

    /// As [`raise`](Self::raise), with a [message](Attached::granted_message) for the assignment that is granted the request. It travels in the same
    /// cache line. The message of a later request for the same assignment may replace it.
    #[inline]
    pub fn raise_with(&self, epoch: u64, message: u64) {
        debug_assert!(epoch != 0 && epoch != SELF_TIMED, "an epoch");
        // Whoever learnt the epoch finds the line of its assignment, or of a later one.
        let line = self.flags.worker.line();
        // SAFETY: the line lives as long as a flag does, its thread's (see `Thread`) or a donor's (see `retired`); the second of its eight words is atomic too.
        unsafe {
            // Release: the thread may read this message with the previous request, to which it does not belong.
            (*line.add(1)).store(message, Ordering::Release);
            (*line).store(epoch, Ordering::Release);
        }
    }
}

impl Clone for YieldFlag {
    fn clone(&self) -> YieldFlag {
        YieldFlag::counted(&mut self.flags.outstanding(), &self.flags)
    }
}

impl Drop for YieldFlag {
    fn drop(&mut self) {
        let mut outstanding = self.flags.outstanding();
        *outstanding -= 1;
        if *outstanding == 0 {
            self.flags.count.notify_all();
        }
        drop(outstanding);
        flag_dropped();
    }
}

/// The number of a thread's flags, and where they point.
#[derive(Debug)]
struct FlagCount {
    count: Guarded<usize>,
    worker: &'static PresentLine,
}

impl Default for FlagCount {
    /// The calling thread's.
    fn default() -> FlagCount {
        FlagCount {
            count: Guarded::default(),
            worker: PresentLine::of_thread(local::shared_line()),
        }
    }
}

impl Drop for FlagCount {
    fn drop(&mut self) {
        self.worker.give_back();
    }
}

impl FlagCount {
    fn outstanding(&self) -> MutexGuard<'_, usize> {
        self.count.lock()
    }

    fn wait(&self) {
        let outstanding = self.outstanding();
        drop(
            self.count
                .wait_while(outstanding, |outstanding| *outstanding > 0),
        );
    }
}

/// A thread's own record of its flags. Its destructor runs before the thread's line is freed, even if `Attached` was leaked.
#[derive(Default)]
struct Thread {
    attached: Cell<bool>,
    flags: Arc<FlagCount>,
}

impl Drop for Thread {
    fn drop(&mut self) {
        // A thread never ends on a fiber. The fiber's code called `exit`, which runs this thread's destructors while other threads continue. The line
        // stays until the process ends, so flags need not be dropped first. Until then the fiber keeps the thread.
        if !local::fiber().is_null() {
            return local::set_no_preempt(local::no_preempt() + 1);
        }
        // Nor does the line of this one go before the process: it may end by `exit` with flags of its own.
        if fork::is_first_thread() {
            return;
        }
        self.flags.wait();
    }
}

/// Asks the C library to tell the child of each fork.
fn watch_forks() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: the function stays, and does what a child may do.
        unsafe { libc::pthread_atfork(None, None, Some(is_no_fiber)) };
    });
}

/// In the child of a fork: the code goes on as a plain thread, since whoever would resume it is not there. Its probes cost what they cost while nobody asks.
extern "C" fn is_no_fiber() {
    local::set_fiber(std::ptr::null_mut());
    local::set_resting(0);
    local::set_deadline(NEVER);
    while !local::answer(local::asked(), 0) {}
}

thread_local! {
    static THREAD: Thread = Thread::default();
}
