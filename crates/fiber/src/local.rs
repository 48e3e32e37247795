//! This thread's words, read and written through `fs` anew each time.
//!
//! Every access is one asm block that adds an offset, which is the same in all threads, to the `fs` of the thread that executes it. No address
//! outlives the block, so code that is suspended between two accesses and resumes in another thread sees that thread's words.
#![expect(unsafe_code, reason = "thread-local words by way of fs")]

use std::arch::asm;
use std::ptr;
use std::sync::atomic::AtomicU64;

use crate::abi::words::{
    __headway_preempt, __headway_self, __headway_worker, ALIVE_OFFSET, ASKED_OFFSET,
    DEADLINE_OFFSET, DEFERRED_OFFSET, EPOCH_OFFSET, FIBER_OFFSET, GRANTED_MESSAGE_OFFSET,
    LEFT_OFFSET, MESSAGE_OFFSET, MET_OFFSET, NO_PREEMPT_OFFSET, RESTING_OFFSET, SELF_TIMED,
    WORKER_OFFSET,
};
use crate::control::FiberControl;
use crate::fs;
use crate::present_line::PresentLine;

/// The offset of `__headway_preempt` from a thread's base: the same in all threads, so it may be computed once.
#[inline(always)]
pub(crate) fn preempt_offset() -> usize {
    let offset: usize;
    // SAFETY: loads a constant of the dynamic linker's.
    unsafe {
        asm!("mov {}, qword ptr [rip + {}@gottpoff]", out(reg) offset, sym __headway_preempt,
            options(pure, readonly, nostack, preserves_flags));
    }
    offset
}

/// The offset of `__headway_self` from a thread's base.
#[inline(always)]
pub(crate) fn self_offset() -> usize {
    let offset: usize;
    // SAFETY: loads a constant of the dynamic linker's.
    unsafe {
        asm!("mov {}, qword ptr [rip + {}@gottpoff]", out(reg) offset, sym __headway_self,
            options(pure, readonly, nostack, preserves_flags));
    }
    offset
}

/// The offset of `__headway_worker` from a thread's base.
#[inline(always)]
pub(crate) fn worker_offset() -> usize {
    let offset: usize;
    // SAFETY: loads a constant of the dynamic linker's.
    unsafe {
        asm!("mov {}, qword ptr [rip + {}@gottpoff]", out(reg) offset, sym __headway_worker,
            options(pure, readonly, nostack, preserves_flags));
    }
    offset
}

macro_rules! read {
    ($doc:literal, $name:ident, $offset:ident, $type:ty, $move:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub(crate) fn $name() -> $type {
            let value: $type;
            // SAFETY: reads a word of this thread's own line.
            unsafe {
                asm!(concat!($move, " ptr fs:[{0} + {2}]"),
                    in(reg) self_offset(), out(reg) value, const $offset,
                    options(nostack, preserves_flags));
            }
            value
        }
    };
}

macro_rules! write {
    ($doc:literal, $name:ident, $offset:ident, $type:ty, $move:literal) => {
        #[doc = $doc]
        #[inline(always)]
        pub(crate) fn $name(value: $type) {
            // SAFETY: writes a word of this thread's own line that no other thread touches.
            unsafe {
                asm!(concat!("mov ", $move),
                    in(reg) self_offset(), in(reg) value, const $offset,
                    options(nostack, preserves_flags));
            }
        }
    };
}

macro_rules! word {
    ($doc:literal, $get:ident, $set:ident, $offset:ident, $type:ty) => {
        read!($doc, $get, $offset, $type, "mov {1:r}, qword");
        write!(
            $doc,
            $set,
            $offset, $type, "qword ptr fs:[{0} + {2}], {1:r}"
        );
    };
}

word!(
    "The fiber that runs, or null.",
    fiber,
    set_fiber,
    FIBER_OFFSET,
    *mut FiberControl
);

/// Replaces the running fiber by another and returns the previous one; null for none.
#[inline(always)]
pub(crate) fn replace_fiber(fiber: *mut FiberControl) -> *mut FiberControl {
    let before: *mut FiberControl;
    // SAFETY: reads and writes a word of this thread's own line.
    unsafe {
        asm!("mov {1}, qword ptr fs:[{0} + {3}]", "mov qword ptr fs:[{0} + {3}], {2}",
            in(reg) self_offset(), out(reg) before, in(reg) fiber, const FIBER_OFFSET,
            options(nostack, preserves_flags));
    }
    before
}

/// The running fiber, or null, and the number of open no-preempt sections.
#[inline(always)]
pub(crate) fn fiber_and_sections() -> (*mut FiberControl, u32) {
    let (fiber, sections): (*mut FiberControl, u32);
    // SAFETY: reads two words of this thread's own line.
    unsafe {
        asm!("mov {1:r}, qword ptr fs:[{0} + {3}]", "mov {2:e}, dword ptr fs:[{0} + {4}]",
            in(reg) self_offset(), out(reg) fiber, lateout(reg) sections, const FIBER_OFFSET, const NO_PREEMPT_OFFSET,
            options(nostack, preserves_flags));
    }
    (fiber, sections)
}

word!(
    "The epoch of the current assignment.",
    epoch,
    set_epoch,
    EPOCH_OFFSET,
    u64
);
word!(
    "What the shared line holds while nobody asks.",
    resting,
    set_resting,
    RESTING_OFFSET,
    u64
);
word!(
    "From when a self-timed thread yields, TSC.",
    deadline,
    write_deadline,
    DEADLINE_OFFSET,
    u64
);
write!(
    "How many probes go by until one looks at the clock, and of how many; both halves of one word.",
    write_pace,
    LEFT_OFFSET, u32, "dword ptr fs:[{0} + {2}], {1:e}"
);
read!(
    "How many no-preempt sections are open.",
    no_preempt,
    NO_PREEMPT_OFFSET,
    u32,
    "mov {1:e}, dword"
);
write!(
    "How many no-preempt sections are open.",
    set_no_preempt,
    NO_PREEMPT_OFFSET, u32, "dword ptr fs:[{0} + {2}], {1:e}"
);
read!(
    "Whether and why a section is to yield at its end (not 0).",
    deferred,
    DEFERRED_OFFSET,
    u32,
    "mov {1:e}, dword"
);
write!(
    "Whether and why a section is to yield at its end (not 0).",
    set_deferred,
    DEFERRED_OFFSET, u32, "dword ptr fs:[{0} + {2}], {1:e}"
);

/// Sets the worker that runs this, null for none.
#[inline(always)]
pub(crate) fn set_worker(worker: *const PresentLine) {
    set_worker_word::<WORKER_OFFSET>(worker as u64);
}

/// The worker that runs this: null in a thread that is none, and at home.
#[inline(always)]
fn worker() -> *const PresentLine {
    worker_word::<WORKER_OFFSET>() as *const PresentLine
}

/// When the worker was last known to get on, ns.
#[inline(always)]
pub(crate) fn alive_ns() -> u64 {
    worker_word::<ALIVE_OFFSET>()
}

/// Sets [`alive_ns`].
#[inline(always)]
pub(crate) fn set_alive_ns(ns: u64) {
    set_worker_word::<ALIVE_OFFSET>(ns);
}

#[inline(always)]
fn worker_word<const OFFSET: usize>() -> u64 {
    let word: u64;
    // SAFETY: reads this thread's own line.
    unsafe {
        asm!("mov {1}, qword ptr fs:[{0} + {2}]", in(reg) worker_offset(), out(reg) word,
            const OFFSET, options(nostack, preserves_flags));
    }
    word
}

#[inline(always)]
fn set_worker_word<const OFFSET: usize>(word: u64) {
    // SAFETY: writes a word of this thread's own line that no other thread touches.
    unsafe {
        asm!("mov qword ptr fs:[{0} + {2}], {1}", in(reg) worker_offset(), in(reg) word,
            const OFFSET, options(nostack, preserves_flags));
    }
}

/// Sets when a self-timed thread yields, a reading of the TSC. The next probe reads the clock, since other code may run from now on.
#[inline(always)]
pub(crate) fn set_deadline(tsc: u64) {
    write_deadline(tsc);
    write_pace(0);
}

/// Sets when a self-timed thread yields, for the code that runs already.
#[inline(always)]
pub(crate) fn move_deadline(tsc: u64) {
    write_deadline(tsc);
}

/// The request to this thread: 0, an epoch, or `SELF_TIMED`.
#[inline(always)]
pub(crate) fn asked() -> u64 {
    preempt_word::<ASKED_OFFSET>()
}

/// The request's message. A thread that has read the request reads its message too, or a later one.
#[inline(always)]
pub(crate) fn message() -> u64 {
    preempt_word::<MESSAGE_OFFSET>()
}

/// The message of the request that the current assignment was granted, or 0.
#[inline(always)]
pub(crate) fn granted_message() -> u64 {
    preempt_word::<GRANTED_MESSAGE_OFFSET>()
}

/// The reading by which a probe last found that the deadline has passed, TSC.
#[inline(always)]
pub(crate) fn met_tsc() -> u64 {
    preempt_word::<MET_OFFSET>()
}

/// Sets [`met_tsc`], where no stub does.
#[inline(always)]
pub(crate) fn set_met_tsc(tsc: u64) {
    // SAFETY: writes a word of this thread's own line that no other thread touches.
    unsafe {
        asm!("mov qword ptr fs:[{0} + {2}], {1}", in(reg) preempt_offset(), in(reg) tsc,
            const MET_OFFSET, options(nostack, preserves_flags));
    }
}

#[inline(always)]
fn preempt_word<const OFFSET: usize>() -> u64 {
    let word: u64;
    // SAFETY: reads this thread's own line.
    unsafe {
        asm!("mov {1}, qword ptr fs:[{0} + {2}]", in(reg) preempt_offset(), out(reg) word,
            const OFFSET, options(nostack, preserves_flags));
    }
    word
}

/// Sets [`granted_message`].
#[inline(always)]
pub(crate) fn set_granted_message(message: u64) {
    // SAFETY: writes a word of this thread's own line that no other thread touches.
    unsafe {
        asm!("mov qword ptr fs:[{0} + {2}], {1}", in(reg) preempt_offset(), in(reg) message,
            const GRANTED_MESSAGE_OFFSET, options(nostack, preserves_flags));
    }
}

/// The function that may renew a slice of the worker that runs this, null for none, and its argument.
#[inline(always)]
pub(crate) fn renewal() -> (*const (), *mut ()) {
    // SAFETY: null, or a worker's, which is never freed. The caller is in a section, so the worker that it finds runs this until the words are read.
    let worker = unsafe { worker().as_ref() };
    worker.map_or((ptr::null(), ptr::null_mut()), PresentLine::renewal)
}

/// Whether the worker that runs this answers sections that ask whether they must yield.
pub(crate) fn answers_sections() -> bool {
    // SAFETY: as in `renewal`.
    let worker = unsafe { worker().as_ref() };
    worker.is_some_and(PresentLine::answers)
}

/// Begins to fetch, for writing, the lines that the worker writes to after this yields.
#[inline(always)]
pub(crate) fn fetch_next_writes() {
    // SAFETY: null, or a worker's, which is never freed; a prefetch faults nowhere.
    unsafe {
        if let Some(worker) = worker().as_ref() {
            let [first, second] = worker.next_writes();
            asm!("prefetchw [{0}]", "prefetchw [{1}]", in(reg) first, in(reg) second, options(nostack, preserves_flags));
        }
    }
}

/// Takes the request `asked` back. False if another request replaced it meanwhile.
#[inline(always)]
pub(crate) fn answer(asked: u64, resting: u64) -> bool {
    exchange(asked, resting)
}

/// As [`answer`], for a request of the current assignment. The next request names a later epoch, which this thread has not published yet, so no
/// other thread writes the line meanwhile. Only a signal can come between, which one instruction prevents without `lock`. With `lock` the
/// thread would wait for the line, which the asking thread has just written, and for all its own earlier stores.
#[inline(always)]
pub(crate) fn take(asked: u64, resting: u64) -> bool {
    let found: u64;
    // SAFETY: reads and writes this thread's own line. A second request for the same assignment may be lost, which changes nothing.
    unsafe {
        asm!("cmpxchg qword ptr fs:[{0} + {2}], {1}", in(reg) preempt_offset(), in(reg) resting,
            const ASKED_OFFSET, inout("rax") asked => found, options(nostack));
    }
    found == asked
}

#[inline(always)]
fn exchange(from: u64, to: u64) -> bool {
    let found: u64;
    // SAFETY: an atomic operation on this thread's own line.
    unsafe {
        asm!("lock cmpxchg qword ptr fs:[{0} + {2}], {1}", in(reg) preempt_offset(), in(reg) to,
            const ASKED_OFFSET, inout("rax") from => found, options(nostack));
    }
    found == from
}

/// Repeats the request to this thread's assignment, unless another request came meanwhile.
pub(crate) fn ask_again() {
    exchange(resting(), epoch());
}

/// Sets what the shared line holds while nobody asks, and stores it there unless somebody does.
#[inline]
pub(crate) fn rest_at(value: u64) {
    set_resting(value);
    let asked = asked();
    if asked != value && [0, SELF_TIMED].contains(&asked) {
        exchange(asked, value);
    }
}

/// Puts the flag of a self-timed thread down, unless somebody asks.
pub(crate) fn lower_self_timed() {
    exchange(SELF_TIMED, 0);
}

/// Puts it up again, where its probes shall read the clock still. A signal's handler may call this.
pub(crate) fn raise_self_timed() {
    if resting() == SELF_TIMED && exchange(0, SELF_TIMED) {
        write_pace(0);
    }
}

/// The address of this thread's shared line, for other threads. Valid while this thread lives.
pub(crate) fn shared_line() -> *const AtomicU64 {
    shared_line_at(fs::base())
}

/// The address of the shared line of the thread with this base.
#[inline(always)]
pub(crate) fn shared_line_at(base: usize) -> *const AtomicU64 {
    base.wrapping_add(preempt_offset())
        .wrapping_add(ASKED_OFFSET) as *const AtomicU64
}
