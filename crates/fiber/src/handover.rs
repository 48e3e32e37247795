//! The words of a worker, lent to the fiber that it runs.
//!
//! Probes and sections use the words of the thread whose base is in `fs`. While a worker runs a fiber that owns a [thread's state](crate::donor), that is the
//! fiber's. So the words by which a probe decides go there with each turn, and what the turn changed comes back. What a probe needs of its worker beyond that it finds
//! [there](crate::present_line), by a word that is lent.
#![expect(unsafe_code, reason = "thread-local words of two threads")]

use std::sync::atomic::{AtomicU64, Ordering};

use crate::abi::words::{
    ALIVE_OFFSET, ASKED_OFFSET, DEADLINE_OFFSET, EPOCH_OFFSET, FIBER_OFFSET,
    GRANTED_MESSAGE_OFFSET, LEFT_OFFSET, MESSAGE_OFFSET, NEVER, NO_PREEMPT_OFFSET, RESTING_OFFSET,
    SELF_TIMED, WORKER_OFFSET,
};
use crate::control::FiberControl;
use crate::local::{preempt_offset, self_offset, worker_offset};
use crate::present_line::PresentLine;

/// Words of the own line that a worker lends. The fiber is not among them, nor what a probe goes by between two readings of the clock: the countdown of TSC probes and the
/// pace of self-timed ones are the code's own.
const OWN: [usize; 3] = [DEADLINE_OFFSET, EPOCH_OFFSET, RESTING_OFFSET];

const WORKERS: [usize; 2] = [WORKER_OFFSET, ALIVE_OFFSET];

/// The words of one thread.
#[derive(Clone, Copy)]
pub(crate) struct ThreadWords {
    own: usize,
    shared: usize,
    workers: usize,
}

impl ThreadWords {
    /// Of the thread with this base.
    #[inline(always)]
    pub(crate) fn at(base: usize) -> ThreadWords {
        ThreadWords {
            own: base.wrapping_add(self_offset()),
            shared: base.wrapping_add(preempt_offset()),
            workers: base.wrapping_add(worker_offset()),
        }
    }

    /// Writes the fiber that is all that the thread ever runs.
    ///
    /// # Safety
    /// The thread is parked.
    pub(crate) unsafe fn set_fiber(self, fiber: *const FiberControl) {
        // SAFETY: the caller's promise.
        unsafe { set(self.own + FIBER_OFFSET, fiber as u64) };
    }

    /// The fiber that the thread runs, or that was written as the only one; null for none.
    ///
    /// # Safety
    /// The thread lives.
    pub(crate) unsafe fn fiber(self) -> *const FiberControl {
        // SAFETY: the caller's promise.
        unsafe { get(self.own + FIBER_OFFSET) as *const FiberControl }
    }

    /// The calling thread, whose words these are, is about to run code with the words `to`: it lends them all that goes by worker or assignment, and a request
    /// that came for the assignment already.
    ///
    /// # Safety
    /// The other's thread is parked, and its fiber runs nowhere.
    #[inline(always)]
    pub(crate) unsafe fn lend(self, to: ThreadWords) {
        // SAFETY: the caller's promise; the words are there for as long as their threads.
        unsafe {
            copy(self.own, to.own, OWN);
            copy(self.workers, to.workers, WORKERS);
            // Sections that were left open are closed, as in each assignment.
            set(to.own + NO_PREEMPT_OFFSET, 0);
            // The deadline may be another: the next probe reads the clock.
            set_half(to.own + LEFT_OFFSET, 0);
            let epoch = get(self.own + EPOCH_OFFSET);
            let resting = get(self.own + RESTING_OFFSET);
            let (mine, its) = (self.asked(), to.asked());
            if let Some(worker) = (get(self.workers + WORKER_OFFSET) as *const PresentLine).as_ref()
            {
                worker.set_line(its);
            }
            if mine.load(Ordering::Acquire) == epoch && epoch != 0 {
                // The request came before the line was known.
                self.copy_message(to);
                its.store(epoch, Ordering::Relaxed);
                mine.store(resting, Ordering::Relaxed);
                return;
            }
            let is_down = mine.load(Ordering::Relaxed) == 0;
            settle(its, if is_down { 0 } else { resting }, epoch);
        }
    }

    /// Called when the calling thread has the words `to` already: a slice's timer that raised the flag after [`lend`](Self::lend) looked at it, and before, did so here.
    ///
    /// # Safety
    /// As for [`lend`](Self::lend).
    #[inline(always)]
    pub(crate) unsafe fn pass_timer_on(self, to: ThreadWords) {
        if self.asked().load(Ordering::Relaxed) == SELF_TIMED {
            let _ =
                to.asked()
                    .compare_exchange(0, SELF_TIMED, Ordering::Relaxed, Ordering::Relaxed);
        }
    }

    /// The code with the words `from` has left: what it changed, and a request that it did not meet, comes back.
    ///
    /// # Safety
    /// As for [`lend`](Self::lend).
    #[inline(always)]
    pub(crate) unsafe fn take_back(self, from: ThreadWords) {
        // SAFETY: the caller's promise.
        unsafe {
            copy(from.own, self.own, [DEADLINE_OFFSET]);
            copy(from.workers, self.workers, [ALIVE_OFFSET]);
            let granted = get(from.shared + GRANTED_MESSAGE_OFFSET);
            if granted != 0 {
                set(self.shared + GRANTED_MESSAGE_OFFSET, granted);
                set(from.shared + GRANTED_MESSAGE_OFFSET, 0);
            }
            let asked = from.asked().load(Ordering::Acquire);
            if asked == get(self.own + EPOCH_OFFSET) {
                from.copy_message(self);
            }
            self.asked().store(asked, Ordering::Relaxed);
        }
    }

    /// No worker runs the code with these words: nobody asks it to yield, and it has no slice.
    ///
    /// # Safety
    /// As for [`lend`](Self::lend).
    pub(crate) unsafe fn belong_to_nobody(self) {
        // SAFETY: the caller's promise.
        unsafe {
            set(self.own + DEADLINE_OFFSET, NEVER);
            set(self.own + NO_PREEMPT_OFFSET, 0);
            set(self.own + EPOCH_OFFSET, 0);
            set(self.own + RESTING_OFFSET, 0);
            set(self.workers + WORKER_OFFSET, 0);
        }
        self.asked().store(0, Ordering::Relaxed);
    }

    /// Who asks late may write it meanwhile, beside a request that is taken back.
    #[inline(always)]
    fn copy_message(self, to: ThreadWords) {
        let message = self.shared_word(MESSAGE_OFFSET).load(Ordering::Relaxed);
        to.shared_word(MESSAGE_OFFSET)
            .store(message, Ordering::Relaxed);
    }

    #[inline(always)]
    fn asked(&self) -> &AtomicU64 {
        self.shared_word(ASKED_OFFSET)
    }

    #[inline(always)]
    fn shared_word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: a word that lives as long as the thread; other threads access it atomically.
        unsafe { &*((self.shared + offset) as *const AtomicU64) }
    }
}

/// Takes back a late request for an earlier assignment, maybe another worker's, and what stood there while nobody asked.
#[inline(always)]
fn settle(line: &AtomicU64, idle: u64, epoch: u64) {
    let mut asked = line.load(Ordering::Relaxed);
    while asked != idle && asked != epoch {
        match line.compare_exchange(asked, idle, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => return,
            Err(now) => asked = now,
        }
    }
}

#[inline(always)]
unsafe fn copy<const N: usize>(from: usize, to: usize, offsets: [usize; N]) {
    for offset in offsets {
        // SAFETY: the caller's promise.
        unsafe { set(to + offset, get(from + offset)) };
    }
}

/// Volatile, since assembly reads and writes the same words.
#[inline(always)]
unsafe fn get(word: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { (word as *const u64).read_volatile() }
}

#[inline(always)]
unsafe fn set(word: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe { (word as *mut u64).write_volatile(value) };
}

#[inline(always)]
unsafe fn set_half(word: usize, value: u32) {
    // SAFETY: the caller's promise.
    unsafe { (word as *mut u32).write_volatile(value) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::words::{COUNTDOWN_OFFSET, DEFERRED_OFFSET, LOOKED_OFFSET, MET_OFFSET};

    const WORDS: usize = 8;
    const EPOCH: u64 = 7;

    /// The three lines of a thread, each word another one.
    #[repr(align(64))]
    struct ThreadLines {
        own: [u64; WORDS],
        shared: [u64; WORDS],
        workers: [u64; WORDS],
        present: Option<&'static PresentLine>,
    }

    impl Drop for ThreadLines {
        fn drop(&mut self) {
            self.present.inspect(|present| present.give_back());
        }
    }

    impl ThreadLines {
        fn filled(with: u64) -> ThreadLines {
            let line = |first: u64| std::array::from_fn(|at| with + first + at as u64);
            ThreadLines {
                own: line(0),
                shared: line(100),
                workers: line(200),
                present: None,
            }
        }

        /// A worker's, in an assignment that nobody has asked to yield.
        fn of_worker(resting: u64) -> ThreadLines {
            let mut lines = ThreadLines::filled(1_000);
            lines.own[EPOCH_OFFSET / 8] = EPOCH;
            lines.own[RESTING_OFFSET / 8] = resting;
            lines.shared[ASKED_OFFSET / 8] = resting;
            let present = PresentLine::of_thread(std::ptr::null());
            lines.present = Some(present);
            lines.workers[WORKER_OFFSET / 8] = std::ptr::from_ref(present) as u64;
            lines
        }

        fn words(&mut self) -> ThreadWords {
            ThreadWords {
                own: self.own.as_mut_ptr() as usize,
                shared: self.shared.as_mut_ptr() as usize,
                workers: self.workers.as_mut_ptr() as usize,
            }
        }
    }

    fn lend(worker: &mut ThreadLines, donor: &mut ThreadLines) {
        // SAFETY: the words of no thread, which only this one uses.
        unsafe { worker.words().lend(donor.words()) };
    }

    fn take_back(worker: &mut ThreadLines, donor: &mut ThreadLines) {
        // SAFETY: as above.
        unsafe { worker.words().take_back(donor.words()) };
    }

    /// What a donor's own line is to be after a turn began: five words of its worker's in all, and what it had itself.
    #[test]
    fn a_turn_lends_each_word_by_which_a_probe_decides() {
        let (mut worker, mut donor) = (
            ThreadLines::of_worker(SELF_TIMED),
            ThreadLines::filled(2_000),
        );
        let (mut own, workers_before) = (donor.own, donor.workers);
        lend(&mut worker, &mut donor);
        for lent in [DEADLINE_OFFSET, EPOCH_OFFSET, RESTING_OFFSET] {
            own[lent / 8] = worker.own[lent / 8];
        }
        // Two halves of a word each: no section is open, and the next probe reads the clock.
        assert_eq!(NO_PREEMPT_OFFSET / 8, DEFERRED_OFFSET / 8);
        own[NO_PREEMPT_OFFSET / 8] = 0;
        own[LOOKED_OFFSET / 8] &= u64::from(u32::MAX);
        assert_eq!(donor.own, own);
        assert_ne!(own[COUNTDOWN_OFFSET / 8], worker.own[COUNTDOWN_OFFSET / 8]);
        assert_ne!(own[FIBER_OFFSET / 8], worker.own[FIBER_OFFSET / 8]);

        let mut workers = workers_before;
        for lent in [WORKER_OFFSET, ALIVE_OFFSET] {
            workers[lent / 8] = worker.workers[lent / 8];
        }
        assert_eq!(donor.workers, workers);
        assert_eq!(donor.shared[ASKED_OFFSET / 8], SELF_TIMED);
        // SAFETY: the worker's, which is never freed.
        let present = unsafe { &*(donor.workers[WORKER_OFFSET / 8] as *const PresentLine) };
        assert_eq!(present.line(), donor.shared.as_ptr().cast());
    }

    #[test]
    fn a_turn_gives_back_what_it_changed_and_nothing_else() {
        let (mut worker, mut donor) = (ThreadLines::of_worker(0), ThreadLines::filled(2_000));
        lend(&mut worker, &mut donor);
        let (mut own, mut shared, mut workers) = (worker.own, worker.shared, worker.workers);
        // All that the code may write, and a request that no probe has met.
        donor.own[DEADLINE_OFFSET / 8] = NEVER;
        donor.workers[ALIVE_OFFSET / 8] = 11;
        donor.shared[GRANTED_MESSAGE_OFFSET / 8] = 12;
        donor.shared[ASKED_OFFSET / 8] = EPOCH;
        donor.shared[MESSAGE_OFFSET / 8] = 13;
        donor.shared[MET_OFFSET / 8] = 14;
        take_back(&mut worker, &mut donor);
        own[DEADLINE_OFFSET / 8] = NEVER;
        workers[ALIVE_OFFSET / 8] = 11;
        shared[GRANTED_MESSAGE_OFFSET / 8] = 12;
        shared[ASKED_OFFSET / 8] = EPOCH;
        shared[MESSAGE_OFFSET / 8] = 13;
        assert_eq!(
            (worker.own, worker.shared, worker.workers),
            (own, shared, workers)
        );
        assert_eq!(donor.shared[GRANTED_MESSAGE_OFFSET / 8], 0);
    }

    #[test]
    fn a_request_that_came_before_the_turn_comes_with_it() {
        let (mut worker, mut donor) = (ThreadLines::of_worker(0), ThreadLines::filled(2_000));
        worker.shared[ASKED_OFFSET / 8] = EPOCH;
        worker.shared[MESSAGE_OFFSET / 8] = 13;
        lend(&mut worker, &mut donor);
        assert_eq!(donor.shared[ASKED_OFFSET / 8], EPOCH);
        assert_eq!(donor.shared[MESSAGE_OFFSET / 8], 13);
        assert_eq!(worker.shared[ASKED_OFFSET / 8], 0);
    }

    #[test]
    fn a_request_to_an_earlier_assignment_is_taken_back() {
        let (mut worker, mut donor) = (ThreadLines::of_worker(0), ThreadLines::filled(2_000));
        donor.shared[ASKED_OFFSET / 8] = EPOCH - 1;
        lend(&mut worker, &mut donor);
        assert_eq!(donor.shared[ASKED_OFFSET / 8], 0);
    }

    #[test]
    fn at_home_nobody_asks() {
        let (mut worker, mut donor) = (
            ThreadLines::of_worker(SELF_TIMED),
            ThreadLines::filled(2_000),
        );
        lend(&mut worker, &mut donor);
        // SAFETY: as above.
        unsafe { donor.words().belong_to_nobody() };
        assert_eq!(donor.own[DEADLINE_OFFSET / 8], NEVER);
        for cleared in [NO_PREEMPT_OFFSET, EPOCH_OFFSET, RESTING_OFFSET] {
            assert_eq!(donor.own[cleared / 8], 0);
        }
        assert_eq!(donor.workers[WORKER_OFFSET / 8], 0);
        assert_eq!(donor.shared[ASKED_OFFSET / 8], 0);
    }
}
