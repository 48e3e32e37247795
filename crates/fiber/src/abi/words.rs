//! The thread-local objects of the contract with probes, a private one, and the place of each word in them.
#![expect(
    unsafe_code,
    reason = "thread-local objects with names that other languages link to"
)]

use std::cell::UnsafeCell;

/// Version of this layout.
pub const VERSION: u32 = 1;

/// In [`__headway_preempt`]: the epoch of the assignment that must yield, 0 for none, or [`SELF_TIMED`]. Other threads write only this word and
/// the message beside it.
pub const ASKED_OFFSET: usize = 0;
/// In [`__headway_preempt`], private to this crate: `u64`, the asking thread's message. It writes the message before [`ASKED_OFFSET`].
pub(crate) const MESSAGE_OFFSET: usize = 8;
/// In [`__headway_preempt`], private to this crate: `u64`, the message of the request that the current assignment was granted. Only this thread
/// writes it. It lies in this line because a grant writes to the line anyway.
pub(crate) const GRANTED_MESSAGE_OFFSET: usize = 16;
/// In [`__headway_preempt`], private to this crate: `u64`, the TSC reading by which a probe last found that the deadline has passed. Only this
/// thread writes it. It lies in this line because the other has no room.
pub(crate) const MET_OFFSET: usize = 56;

/// In [`__headway_self`]: `u64`, the TSC reading from which a self-timed thread yields.
pub const DEADLINE_OFFSET: usize = 0;
/// In [`__headway_self`]: `u32`, the number of open no-preempt sections.
pub const NO_PREEMPT_OFFSET: usize = 8;
/// In [`__headway_self`]: `u32`, not 0 when the fiber must yield at the end of its section.
pub const DEFERRED_OFFSET: usize = 12;
/// In [`__headway_self`]: `i64`, the countdown from which TSC probes subtract their weight; below 0 they call
/// [`__headway_tick`](crate::abi::__headway_tick).
pub const COUNTDOWN_OFFSET: usize = 16;
/// In [`__headway_self`]: pointer to the running fiber, null for none.
pub const FIBER_OFFSET: usize = 24;
/// In [`__headway_self`]: `u64`, the epoch of the current assignment.
pub const EPOCH_OFFSET: usize = 32;
/// In [`__headway_self`], private to this crate: `u64`, the resting value of [`ASKED_OFFSET`]: 0, or [`SELF_TIMED`]. Where it is [`SELF_TIMED`] and the
/// word is 0, a timer is set that makes it [`SELF_TIMED`].
pub(crate) const RESTING_OFFSET: usize = 40;

/// In [`__headway_self`], private to this crate: `u32`, the low half of the TSC when a self-timed thread's probe last read it.
pub(crate) const LOOKED_OFFSET: usize = 56;
/// In [`__headway_self`], private to this crate: `u16`, the number of probes until the next reading, this one included.
pub(crate) const LEFT_OFFSET: usize = 60;
/// In [`__headway_self`], private to this crate: `u16`, the number of probes of the last interval that did not read: 0, 1, 3, … [`MOST_SKIPPED`]. Of TSC
/// probes, the countdowns of the last interval beyond the first.
pub(crate) const SKIPPED_OFFSET: usize = 62;

/// In [`__headway_worker`]: pointer to the [worker](crate::present_line::PresentLine) that runs this, null for none.
pub(crate) const WORKER_OFFSET: usize = 0;
/// In [`__headway_worker`]: `u64`, when the worker was last known to get on, ns.
pub(crate) const ALIVE_OFFSET: usize = 8;

/// The most probes in a row that do not read the clock, a power of two less one. If the next probes lie a microsecond apart, the thread yields
/// late by that many microseconds, once.
pub const MOST_SKIPPED: u16 = 63;
/// As [`MOST_SKIPPED`], of the countdowns of TSC probes, each of which may take a microsecond.
pub(crate) const MOST_COUNTDOWNS: u16 = 15;
/// Between two clock readings of a self-timed thread a sixteenth of the slice's rest should pass, as a shift.
pub(crate) const LOOKS_SHIFT: u32 = 4;
/// The fewest ticks that should pass: 0.15 to 0.25 µs, the time that a flag takes to arrive. After an interval half as long as it should be, half as many
/// probes read; after one too long, twice as many.
pub(crate) const LOOK_TICKS: u32 = 512;
/// The most ticks that should pass: some 3 µs, by then a reading costs less than the probes.
pub(crate) const MOST_LOOK_TICKS: u32 = 8192;

/// In [`__headway_preempt`]: the thread's own probes read the clock.
pub const SELF_TIMED: u64 = u64::MAX;

/// A deadline that never passes.
pub const NEVER: u64 = u64::MAX;

/// The start of the countdown of TSC probes, in units of their weight (about one instruction each).
pub const COUNTDOWN: i64 = 2048;

/// A thread's own cache line.
#[repr(C, align(64))]
#[derive(Debug)]
pub struct CacheLine(UnsafeCell<[u64; 8]>);

// SAFETY: Rust code never touches a line by its name. It goes through `local`, which states which thread writes which word.
unsafe impl Sync for CacheLine {}

// A static in a section whose name begins with `.tbss` becomes a thread-local symbol, of which every thread has a zeroed copy. Unlike a
// symbol made by `global_asm!`, it is among those that a shared library exports. Its Rust name must never be used but as the operand
// of an asm block that adds the thread's base.

/// The line that other threads write: see [`ASKED_OFFSET`].
#[unsafe(no_mangle)]
#[unsafe(link_section = ".tbss.__headway_preempt")]
pub static __headway_preempt: CacheLine = CacheLine(UnsafeCell::new([0; 8]));

/// The line that only its own thread writes.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".tbss.__headway_self")]
pub static __headway_self: CacheLine = CacheLine(UnsafeCell::new([0; 8]));

/// The line with what is the worker's beyond a probe's words: private to this crate.
#[unsafe(no_mangle)]
#[unsafe(link_section = ".tbss.__headway_worker")]
pub(crate) static __headway_worker: CacheLine = CacheLine(UnsafeCell::new([0; 8]));
