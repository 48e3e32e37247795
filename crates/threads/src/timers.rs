//! The timers of a kthread: a heap of threads in timed waits.
#![expect(
    unsafe_code,
    reason = "timers lie on the stacks of the threads that wait"
)]

use std::cell::Cell;
use std::ptr;

use headway_sync::atomic::{AtomicU64, Ordering};

use crate::head::Uthread;
use crate::spin::SpinLock;

/// Decides between the timer and the thread's other wake-up. After `true` only the timer makes the thread ready.
pub(crate) type TimerClaim = unsafe fn(data: *const (), thread: Uthread) -> bool;

/// A thread's timer, on its stack. The lock of the heap guards it.
pub(crate) struct Alarm {
    due_ns: u64,
    thread: Uthread,
    claim: TimerClaim,
    data: *const (),
    /// Its index in the heap, or [`NOWHERE`].
    place: Cell<usize>,
}

const NOWHERE: usize = usize::MAX;

/// The children of a node of the heap.
const CHILDREN: usize = 4;

/// Any kthread may read these, and fire the timers of a busy kthread.
pub(crate) struct Timers {
    next_due_ns: AtomicU64,
    heap: SpinLock<AlarmHeap>,
}

/// The first to be due comes first.
#[derive(Default)]
struct AlarmHeap(Vec<*const Alarm>);

// SAFETY: an alarm lives while it is in the heap, whichever kthread reads it.
unsafe impl Send for AlarmHeap {}

impl Default for Timers {
    fn default() -> Self {
        Timers {
            next_due_ns: AtomicU64::new(u64::MAX),
            heap: SpinLock::default(),
        }
    }
}

impl Alarm {
    pub(crate) fn new(due_ns: u64, thread: Uthread, claim: TimerClaim, data: *const ()) -> Alarm {
        Alarm {
            due_ns,
            thread,
            claim,
            data,
            place: Cell::new(NOWHERE),
        }
    }
}

impl Timers {
    /// Adds an alarm, which lives until it is [removed](Timers::remove).
    pub(crate) fn add(&self, alarm: &Alarm) {
        self.change(|heap| heap.push(alarm));
    }

    /// Removes an alarm, if it is still in the heap.
    pub(crate) fn remove(&self, alarm: &Alarm) {
        self.change(|heap| heap.remove(alarm));
    }

    /// The time at which the next alarm is due; `u64::MAX` without any.
    #[inline]
    pub(crate) fn next_due_ns(&self) -> u64 {
        self.next_due_ns.load(Ordering::Relaxed)
    }

    /// Takes a thread whose alarm is due; the caller makes it ready.
    pub(crate) fn pop_due(&self, now_ns: u64) -> Option<Uthread> {
        if self.next_due_ns() > now_ns {
            return None;
        }
        self.change(|heap| {
            while let Some(alarm) = heap.pop_due(now_ns) {
                // SAFETY: the thread takes its alarm back under this lock before it goes on.
                let claimed = unsafe { (alarm.claim)(alarm.data, alarm.thread) };
                if claimed {
                    return Some(alarm.thread);
                }
            }
            None
        })
    }

    fn change<R>(&self, change: impl FnOnce(&mut AlarmHeap) -> R) -> R {
        self.heap.with(|heap| {
            let result = change(heap);
            let next = heap.0.first();
            // SAFETY: in the heap, so it lives.
            let due_ns = next.map_or(u64::MAX, |&alarm| unsafe { (*alarm).due_ns });
            self.next_due_ns.store(due_ns, Ordering::Release);
            result
        })
    }
}

impl AlarmHeap {
    fn push(&mut self, alarm: &Alarm) {
        let at = self.0.len();
        self.0.push(ptr::null());
        self.put(at, alarm);
        self.up(at);
    }

    fn pop_due<'a>(&mut self, now_ns: u64) -> Option<&'a Alarm> {
        let first = *self.0.first()?;
        // SAFETY: in the heap, so it lives; its thread waits until its alarm is out.
        let first = unsafe { &*first };
        (first.due_ns <= now_ns).then(|| {
            self.remove(first);
            first
        })
    }

    fn remove(&mut self, alarm: &Alarm) {
        let at = alarm.place.replace(NOWHERE);
        if at == NOWHERE {
            return;
        }
        let last = self.0.pop().expect("it holds the alarm");
        if at < self.0.len() {
            self.put(at, last);
            self.up(at);
            self.down(at);
        }
    }

    fn up(&mut self, mut at: usize) {
        while at > 0 {
            let above = (at - 1) / CHILDREN;
            if self.due_ns(above) <= self.due_ns(at) {
                return;
            }
            self.swap(above, at);
            at = above;
        }
    }

    fn down(&mut self, mut at: usize) {
        loop {
            let children = CHILDREN * at + 1..(CHILDREN * at + CHILDREN + 1).min(self.0.len());
            let Some(first) = children.min_by_key(|&child| self.due_ns(child)) else {
                return;
            };
            if self.due_ns(at) <= self.due_ns(first) {
                return;
            }
            self.swap(at, first);
            at = first;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        let (first, second) = (self.0[one], self.0[other]);
        self.put(one, second);
        self.put(other, first);
    }

    fn put(&mut self, at: usize, alarm: *const Alarm) {
        self.0[at] = alarm;
        // SAFETY: in the heap, so it lives.
        unsafe { (*alarm).place.set(at) };
    }

    fn due_ns(&self, at: usize) -> u64 {
        // SAFETY: in the heap, so it lives.
        unsafe { (*self.0[at]).due_ns }
    }
}
