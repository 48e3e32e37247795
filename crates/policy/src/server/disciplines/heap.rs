//! A priority queue of waiting requests, and the disciplines that are one.

use super::classes::QueuedByClass;
use super::{Accounting, Discipline, Preview, WithoutWithdrawal};
use crate::ClassId;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, JobId, Jobs, Plan, WorkerId};
use alloc::vec::Vec;

/// A waiting request: what comes first has the least key, and entered first among equals.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct HeapEntry {
    key: u64,
    /// Order of entry.
    sequence: u64,
    id: JobId,
}

/// A heap of four children a node: half as deep as a binary one, and children share a cache line
/// or two.
struct Heap {
    entries: Vec<HeapEntry>,
}

impl Heap {
    const CHILDREN: usize = 4;

    #[inline]
    fn push(&mut self, entry: HeapEntry) {
        let mut hole = self.entries.len();
        self.entries.push(entry);
        while hole > 0 {
            let parent = (hole - 1) / Self::CHILDREN;
            if self.entries[parent] < entry {
                break;
            }
            self.entries[hole] = self.entries[parent];
            hole = parent;
        }
        self.entries[hole] = entry;
    }

    /// Takes out the first.
    #[inline]
    fn pop(&mut self) {
        let Some(last) = self.entries.pop() else {
            return;
        };
        let len = self.entries.len();
        let mut hole = 0;
        loop {
            let first_child = hole * Self::CHILDREN + 1;
            let children = first_child..len.min(first_child + Self::CHILDREN);
            let Some(least) = children.min_by_key(|&child| self.entries[child]) else {
                break;
            };
            if self.entries[least] > last {
                break;
            }
            self.entries[hole] = self.entries[least];
            hole = least;
        }
        if len > 0 {
            self.entries[hole] = last;
        }
    }
}

/// What a [`ByKey`] discipline orders by.
pub trait Key {
    /// The request's key as of now; the least comes first. It may note in the job what it found
    /// out about it.
    fn of(&self, job: &mut Job) -> u64;

    /// A request of the class took so long in all.
    fn completed(&mut self, class: ClassId, cpu_ns: u64);

    /// Takes over the rules of one that was just built: see [`Ingress::adopt`](crate::server::role::Ingress::adopt).
    fn adopt(&mut self, fresh: &Self);
}

/// One queue for all classes, in which each has a bound, in the order of a key that does not change while a request
/// waits; first come, first served among equal keys. Only its head is ever offered.
pub struct ByKey<K> {
    key: K,
    heap: Heap,
    pushed: u64,
    counts: QueuedByClass,
}

impl<K: Key> ByKey<K> {
    /// At most `limit` requests of each of so many classes wait, UNKNOWN included; room for `capacity` without allocating.
    #[must_use]
    pub fn new(key: K, classes: usize, limit: usize, capacity: usize) -> Self {
        let entries = Vec::with_capacity(capacity);
        Self {
            key,
            heap: Heap { entries },
            pushed: 0,
            counts: QueuedByClass::new(classes, limit),
        }
    }
}

impl<K: Key> Discipline for ByKey<K> {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed> {
        self.counts.admit(job.class)?;
        self.requeue(jobs, plan, job);
        Ok(())
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, mut job: Job) {
        let key = self.key.of(&mut job);
        self.counts.entered(job.class);
        jobs.put(job);
        self.heap.push(HeapEntry {
            key,
            sequence: self.pushed,
            id: job.id,
        });
        self.pushed += 1;
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let job = self.peek(jobs, 0)?;
        let worker = place(job)?;
        self.heap.pop();
        self.counts.left(job.class);
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.heap.entries.len()
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.counts.waiting_of(class)
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    fn adopt(&mut self, fresh: &Self) {
        self.key.adopt(&fresh.key);
    }
}

impl<K> WithoutWithdrawal for ByKey<K> {}

impl<K: Key> Preview for ByKey<K> {
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        if others > 0 {
            return None;
        }
        self.heap.entries.first().map(|first| jobs.get(first.id))
    }

    fn front_sequence(&self, _jobs: &Jobs) -> Option<u64> {
        None
    }

    #[inline]
    fn index(&self, _class: ClassId, _attained_ns: u64) -> Option<UrgencyIndex> {
        None
    }
}

impl<K: Key> Accounting for ByKey<K> {
    fn resumed(&mut self, _class: ClassId) {}

    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    #[inline]
    fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        self.key.completed(class, cpu_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever is pushed and popped in between: the least key is first, and the oldest of it.
        #[test]
        fn what_comes_first_is_the_least_and_the_oldest_of_it(
            steps in prop::collection::vec(prop::option::weighted(0.6, 0u64..20), 1..400),
        ) {
            let mut heap = Heap { entries: Vec::new() };
            let mut model: Vec<HeapEntry> = Vec::new();
            for (sequence, step) in steps.into_iter().enumerate() {
                if let Some(key) = step {
                    let entry = HeapEntry { key, sequence: sequence as u64, id: JobId(sequence as u32) };
                    heap.push(entry);
                    model.push(entry);
                } else {
                    heap.pop();
                    let first = (0..model.len()).min_by_key(|&at| model[at]);
                    first.map(|at| model.remove(at));
                }
                let first = model.iter().min();
                prop_assert!(heap.entries.first() == first);
                prop_assert_eq!(heap.entries.len(), model.len());
            }
        }
    }
}
