//! The slow path of a probe, after it has saved the registers: it decides, and yields.
#![expect(unsafe_code, reason = "suspends the fiber that runs")]

use std::mem;
use std::ptr::NonNull;

use crate::abi::words::{NEVER, SELF_TIMED};
use crate::control::{FiberControl, Said, SectionQuestion};
use crate::held::Section;
use crate::kept::keeping_control_words;
use crate::local;
use crate::no_preempt::{in_one_thread, in_one_thread_before_leaving};
use crate::signal_frames::in_handler;
use crate::switch::{leave, may_leave};
use crate::timed::{RenewSlice, given_clock};

/// The reason for a probe's call.
#[derive(Clone, Copy)]
enum YieldRequest {
    /// Another thread asks the assignment of this epoch to yield.
    Asked(u64),
    /// The deadline has passed.
    Late,
}

impl YieldRequest {
    /// Takes the request back. False if another request replaced it meanwhile, which the next probe sees.
    #[inline]
    fn withdraw(self) -> bool {
        match self {
            YieldRequest::Asked(epoch) => local::answer(epoch, local::resting()),
            YieldRequest::Late => {
                local::set_deadline(NEVER);
                true
            }
        }
    }

    /// As [`withdraw`](Self::withdraw), for a request to the current assignment.
    #[inline]
    fn take(self) -> bool {
        match self {
            YieldRequest::Asked(epoch) => {
                let taken = local::take(epoch, local::resting());
                local::set_granted_message(local::message());
                taken
            }
            YieldRequest::Late => self.withdraw(),
        }
    }

    /// Whether the request is for the current assignment, not for an earlier one.
    #[inline]
    fn is_current(self) -> bool {
        match self {
            YieldRequest::Asked(epoch) => epoch == local::epoch(),
            YieldRequest::Late => true,
        }
    }
}

/// The reasons why a fiber must yield at the end of its no-preempt section: values of the `deferred` word, which is 0 without a reason.
mod deferral {
    pub(super) const ASKED: u32 = 1;
    pub(super) const LATE: u32 = 2;
    pub(super) const SIGNALLED: u32 = 3;
}

/// A flag probe found a request in this thread's line. (A self-timed thread calls this only past its deadline.)
pub(crate) extern "C-unwind" fn preempted() {
    match local::asked() {
        0 => {}
        SELF_TIMED => late(),
        epoch => {
            // Another core reads these lines. Stores leave in order, so each would wait for its line behind the others. Once they fill the
            // store queue, the next request would wait too.
            local::fetch_next_writes();
            if let Some(control) = granted(YieldRequest::Asked(epoch), deferral::ASKED) {
                // SAFETY: granted.
                unsafe { suspend(control) };
            }
        }
    }
}

/// A TSC probe's countdown ran out, past the deadline.
pub(crate) extern "C-unwind" fn late() {
    if let Some(control) = granted(YieldRequest::Late, deferral::LATE)
        && !renewed(control, local::met_tsc())
    {
        // SAFETY: granted.
        unsafe { suspend(control) };
    }
}

/// Handles a signal. Returns the fiber that the caller must [suspend](suspend).
pub(crate) fn signalled() -> Option<NonNull<FiberControl>> {
    match local::asked() {
        0 | SELF_TIMED => None,
        epoch => granted(YieldRequest::Asked(epoch), deferral::SIGNALLED),
    }
}

/// Whether the calling thread runs a fiber outside of no-preempt sections, for the handler of a signal that stops the thread. If the fiber is inside a
/// section, its slice ends with the section: the fiber yields then, unless its slice is [renewed](crate::Attached::set_renewal). After an allocator's
/// section it yields at its next probe.
pub fn may_stop_here() -> bool {
    may_leave_after(deferral::LATE)
}

/// As [`may_stop_here`], for the handler of a signal that [suspends](crate::suspend_interrupted) the fiber. A fiber inside a section yields at its end in any
/// case. While another handler suspends or resumes the fiber this is false, and that handler must look again once the fiber runs.
pub fn may_suspend_here() -> bool {
    may_leave_after(deferral::SIGNALLED)
}

fn may_leave_after(deferral: u32) -> bool {
    // SAFETY: null, or this thread's current fiber, which lives.
    let Some(control) = (unsafe { local::fiber().as_ref() }) else {
        return false;
    };
    let runs = !control.in_handler.get();
    if runs && local::no_preempt() > 0 {
        local::set_deferred(deferral);
        return false;
    }
    runs
}

/// Called when this reading shows the end of the running fiber's slice. Returns whether the slice was renewed here, on the fiber's stack, so that the
/// fiber continues without a switch.
fn renewed(control: NonNull<FiberControl>, tsc: u64) -> bool {
    // SAFETY: this thread's current fiber.
    let is_held = unsafe { &(*control.as_ptr()).is_held };
    let was_held = is_held.get();
    // A probe in the code that decides must not suspend it, and no signal what learns whose slice it is.
    let sections = local::no_preempt();
    local::set_no_preempt(sections + 1);
    let mut renewed = false;
    let (renew, data) = local::renewal();
    if !renew.is_null() {
        // SAFETY: `Attached::set_renewal` put it there, with its argument.
        let renew = unsafe { mem::transmute::<*const (), RenewSlice>(renew) };
        let errno = errno::get();
        keeping_control_words(|| {
            // SAFETY: as promised to `set_renewal`.
            renewed = unsafe { renew(data, tsc) };
        });
        errno::set(errno);
    }
    local::set_no_preempt(sections);
    // A request of another thread during the decision counts.
    let deferred = local::deferred() != 0;
    local::set_deferred(0);
    let goes_on = renewed && !deferred;
    if goes_on {
        // SAFETY: this thread's current fiber.
        let renewals = unsafe { &(*control.as_ptr()).renewals };
        renewals.set(renewals.get() + 1);
    }
    // After a renewal, the section that delayed the slice's end delayed no other fiber.
    is_held.set(was_held && !goes_on);
    goes_on
}

/// The fiber that must yield now: the running one, if the request is for its assignment and it may leave.
#[inline]
fn granted(request: YieldRequest, deferral: u32) -> Option<NonNull<FiberControl>> {
    let Some(control) = NonNull::new(local::fiber()) else {
        request.withdraw();
        return None;
    };
    if !request.is_current() {
        request.withdraw();
        return None;
    }
    // SAFETY: this thread's current fiber.
    let may_leave = unsafe { may_leave(control) };
    // Who handles a signal has looked at what it interrupted.
    let is_probe = deferral != deferral::SIGNALLED;
    if !may_leave || (is_probe && in_handler(control)) {
        return None; // The request stays, and the fiber soon meets a probe where it can yield.
    }
    if !request.take() {
        return None;
    }
    if local::no_preempt() > 0 {
        local::set_deferred(deferral);
        // SAFETY: this thread's current fiber.
        let control = unsafe { control.as_ref() };
        control.held.met(&control.is_held, now_ticks());
        return None;
    }
    Some(control)
}

/// The slow path of [`NoPreempt::must_yield`](crate::NoPreempt::must_yield). Where the answer is yes, the section's end yields.
#[cold]
pub(crate) fn must_yield_at_end() -> bool {
    let Some(control) = NonNull::new(local::fiber()) else {
        return false;
    };
    // The end of an inner section does not yield. The request stays for a probe outside of it.
    if local::no_preempt() > 1 {
        return false;
    }
    // SAFETY: this thread's current fiber.
    if !unsafe { may_leave(control) } || in_handler(control) {
        return false;
    }
    match local::deferred() {
        0 => {}
        deferral::LATE => {
            // It is answered here. What comes during the decision counts.
            local::set_deferred(0);
            return !renewed_in_section(control, now_ticks());
        }
        _ => return true,
    }
    let (request, now) = match local::asked() {
        0 => return false,
        SELF_TIMED => (YieldRequest::Late, now_ticks()),
        epoch => (YieldRequest::Asked(epoch), 0),
    };
    let is_late = matches!(request, YieldRequest::Late);
    if is_late && now < local::deadline() {
        return false;
    }
    if !request.is_current() {
        request.withdraw();
        return false;
    }
    if !request.take() {
        return false;
    }
    if is_late {
        local::set_met_tsc(now);
        return !renewed_in_section(control, now);
    }
    local::set_deferred(deferral::ASKED);
    true
}

/// As [`renewed`], or by the fiber's worker where that [answers](crate::Attached::answer_sections). A slice that was not renewed ends with the section, whose
/// end does not ask again.
fn renewed_in_section(control: NonNull<FiberControl>, tsc: u64) -> bool {
    let renewed = if local::answers_sections() {
        renewed_by_worker(control)
    } else {
        renewed(control, tsc)
    };
    if !renewed {
        local::set_deferred(deferral::ASKED);
    }
    renewed
}

/// Leaves the stack in the fiber's only section, to ask. Nobody else runs here until it is resumed with the answer: so what the section protects is safe.
fn renewed_by_worker(control: NonNull<FiberControl>) -> bool {
    // SAFETY: current, so it lives.
    let fiber = unsafe { control.as_ref() };
    fiber.question.set(SectionQuestion::Asked);
    // The worker is in no section, and goes on with this fiber as with any.
    local::set_no_preempt(0);
    // SAFETY: the caller looked whether it may leave.
    unsafe { suspend(control) };
    local::set_no_preempt(1);
    let renewed = fiber.question.replace(SectionQuestion::None) == SectionQuestion::Renewed;
    // The section delayed no other fiber then.
    fiber.is_held.set(fiber.is_held.get() && !renewed);
    renewed
}

/// Yields at the end of a no-preempt section in which a request came.
///
/// For C: `if (--count == 0 && deferred) __headway_deferred();` with the count and the word of [`abi`](crate::abi).
#[unsafe(no_mangle)]
#[cold]
pub extern "C-unwind" fn __headway_deferred() {
    let is_late = local::deferred() == deferral::LATE;
    local::set_deferred(0);
    let Some(control) = NonNull::new(local::fiber()) else {
        return;
    };
    if in_handler(control) {
        return yield_at_next_probe(is_late);
    }
    // SAFETY: this thread's current fiber; left only where it may be.
    unsafe {
        if may_leave(control) && !(is_late && renewed(control, now_ticks())) {
            suspend(control);
        }
    }
}

/// As [`__headway_deferred`], for sections inside a library whose callers may hold locks. A request that a probe found waits for the next
/// probe, since no probe stands in such a caller. A request by signal yields here, since the signal could have interrupted that caller too.
///
/// For C: as [`__headway_deferred`].
#[unsafe(no_mangle)]
#[cold]
pub extern "C-unwind" fn __headway_deferred_in_library() {
    __headway_deferred_at_end_of(Section::Other as u32);
}

/// As [`__headway_deferred_in_library`], at the end of a section of this [kind](Section), for reports of the sections that keep requests from
/// yielding.
///
/// For C: as [`__headway_deferred`].
#[unsafe(no_mangle)]
#[cold]
pub extern "C-unwind" fn __headway_deferred_at_end_of(section: u32) {
    if let Some(control) = NonNull::new(local::fiber()) {
        // SAFETY: this thread's current fiber.
        unsafe { control.as_ref() }.held.ended(Section::of(section));
    }
    match local::deferred() {
        deferral::SIGNALLED => __headway_deferred(),
        deferred => {
            local::set_deferred(0);
            yield_at_next_probe(deferred == deferral::LATE);
        }
    }
}

/// The fiber yields at the next probe where it can.
fn yield_at_next_probe(is_late: bool) {
    if is_late {
        local::set_deadline(0);
    } else {
        local::ask_again();
    }
}

/// Says that the running job is long (SYNERGY, section 5.1). It leaves its stack for that: the turn ends, [`Fiber::take_saying`](crate::Fiber::take_saying)
/// tells why, and whoever resumes it has heard. In a no-preempt section it stays, and is heard when it next leaves. A job says so once; later calls
/// change nothing, as do calls outside of fibers.
#[cold]
pub fn say_long() {
    let Some(control) = NonNull::new(local::fiber()) else {
        return;
    };
    // SAFETY: this thread's current fiber.
    let said = unsafe { &(*control.as_ptr()).said };
    if said.get() != Said::Nothing {
        return;
    }
    said.set(Said::Long);
    // SAFETY: as above.
    if local::no_preempt() == 0 && unsafe { may_leave(control) } && !in_handler(control) {
        said.set(Said::Leaves);
        // SAFETY: it may leave.
        unsafe { suspend(control) };
    }
}

/// A reading of the clock that the thread's deadlines go by.
fn now_ticks() -> u64 {
    if let Some(read) = given_clock() {
        return read();
    }
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { std::arch::x86_64::_rdtsc() }
}

/// Suspends a fiber in the middle of its code, and preserves the state that C code expects to be unchanged.
///
/// # Safety
/// As [`leave`].
pub(crate) unsafe fn suspend(control: NonNull<FiberControl>) {
    let errno = in_one_thread_before_leaving(errno::get);
    // SAFETY: current, so it lives.
    let preempted = unsafe { &(*control.as_ptr()).preempted };
    // A signal that comes before the fiber has left may suspend it within this suspension.
    let was_preempted = preempted.replace(true);
    keeping_control_words(|| {
        // SAFETY: the caller's promise.
        unsafe { leave(control) };
    });
    preempted.set(was_preempted);
    in_one_thread(|| errno::set(errno));
}

/// This thread's `errno`.
mod errno {
    use std::hint::black_box;

    type Location = unsafe extern "C" fn() -> *mut libc::c_int;

    /// The C library declares the function as free of effects, so a compiler may keep its result, which is wrong after a migration. A call by an
    /// unknown pointer is made each time.
    fn location() -> *mut libc::c_int {
        let locate: Location = black_box(libc::__errno_location);
        // SAFETY: always valid to call.
        unsafe { locate() }
    }

    pub(super) fn get() -> libc::c_int {
        // SAFETY: this thread's own.
        unsafe { *location() }
    }

    pub(super) fn set(errno: libc::c_int) {
        // SAFETY: this thread's own.
        unsafe { *location() = errno };
    }
}
