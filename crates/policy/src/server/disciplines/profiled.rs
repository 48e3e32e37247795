//! Shortest first where a request's size is its class's mean.
//!
//! The mean moves with each completion, for all of a class at once. So within a class the order is by service received, and means are compared as they are now: in one
//! heap, requests that came after the mean had fallen would overtake those that were begun, and ever more would be begun and wait.

use super::classes::ClassQueues;
use super::heap::{Heap, HeapEntry};
use super::{Accounting, Discipline, Preview, SizeSource, Sizes, WithoutWithdrawal};
use crate::ClassId;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Plan, Shape, WorkerId};
use alloc::vec::Vec;

/// Ordered by the class's mean less the service received: what was begun goes on before another of its class begins. Among classes that want the same, what
/// arrived first.
pub struct ShortestByProfile {
    sizes: Sizes,
    /// Requests that nobody began.
    fresh: ClassQueues,
    /// Those that were interrupted, the most served first. Of a class no more wait than there are workers: another is begun once none of them waits.
    begun: Vec<Heap>,
    begun_waiting: usize,
    /// Order of entry among the begun.
    requeued: u64,
}

impl ShortestByProfile {
    /// With the shape's limit for each class.
    #[must_use]
    pub fn new(shape: &Shape) -> Self {
        let classes = shape.queues();
        Self {
            sizes: Sizes::new(SizeSource::Profile, shape),
            fresh: ClassQueues::new(classes, shape.queue_limit),
            begun: (0..classes)
                .map(|_| Heap::with_capacity(shape.workers))
                .collect(),
            begun_waiting: 0,
            requeued: 0,
        }
    }

    /// The class's request that goes next.
    #[inline]
    fn head<'a>(&self, jobs: &'a Jobs, class: usize) -> Option<&'a Job> {
        match self.begun[class].first() {
            Some(first) => Some(jobs.get(first.id)),
            None => self.fresh.front(jobs, ClassId(class as u16)),
        }
    }

    /// What outlived its class's mean wants nothing more, as far as one can know.
    #[inline]
    fn first<'a>(&self, jobs: &'a Jobs) -> Option<&'a Job> {
        let heads = (0..self.begun.len()).filter_map(|class| self.head(jobs, class));
        heads.min_by_key(|job| {
            let wants_ns = self.sizes.of(job).saturating_sub(job.attained_ns);
            (wants_ns, job.arrived_ns)
        })
    }
}

impl Discipline for ShortestByProfile {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, mut job: Job) -> Result<(), Shed> {
        // Noted for monitors, which see what the queue goes by.
        job.size_ns = self.sizes.of(&job);
        self.fresh.push(jobs, job)
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, mut job: Job) {
        job.size_ns = self.sizes.of(&job);
        if job.attained_ns == 0 {
            return self.fresh.push_front(jobs, job);
        }
        jobs.put(job);
        self.begun[job.class.index()].push(HeapEntry {
            key: u64::MAX - job.attained_ns,
            sequence: self.requeued,
            id: job.id,
        });
        self.begun_waiting += 1;
        self.requeued += 1;
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let job = self.first(jobs)?;
        let worker = place(job)?;
        let begun = &mut self.begun[job.class.index()];
        if begun.first().is_some() {
            begun.pop();
            self.begun_waiting -= 1;
        } else {
            self.fresh.pop(jobs, job.class);
        }
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.fresh.waiting() + self.begun_waiting
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.fresh.waiting_of(class) + self.begun[class.index()].len()
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    fn adopt(&mut self, _fresh: &Self) {}
}

impl WithoutWithdrawal for ShortestByProfile {}

impl Preview for ShortestByProfile {
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        if others > 0 {
            return None;
        }
        self.first(jobs)
    }

    fn front_sequence(&self, _jobs: &Jobs) -> Option<u64> {
        None
    }
}

impl Accounting for ShortestByProfile {
    fn resumed(&mut self, _class: ClassId) {}

    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    #[inline]
    fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        self.sizes.completed(class, cpu_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BitSet;
    use crate::server::JobId;
    use crate::server::plan::Order;
    use proptest::prelude::*;

    const WORKERS: usize = 3;

    #[derive(Clone, Copy, Debug)]
    enum Step {
        Arrive {
            class: u16,
        },
        Begin,
        /// What runs and was begun first is interrupted after so much more, ns.
        Interrupt {
            ran_ns: u64,
        },
        /// It ends after so much more, ns.
        End {
            ran_ns: u64,
        },
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            (0..3u16).prop_map(|class| Step::Arrive { class }),
            Just(Step::Begin),
            (1..50_000u64).prop_map(|ran_ns| Step::Interrupt { ran_ns }),
            (0..500_000u64).prop_map(|ran_ns| Step::End { ran_ns }),
        ];
        prop::collection::vec(step, 1..300)
    }

    proptest! {
        /// However means move: what goes next has the least left by the present means, and no class begins another while one that was begun waits.
        #[test]
        fn what_was_begun_goes_on_first(steps in steps()) {
            let shape = Shape::new(WORKERS).class(1_000, 0.5).class(90_000, 0.5);
            let mut jobs = Jobs::new(300);
            let classes = (0..3).map(ClassId).collect();
            let plan = Plan::open(Order::Rank, classes, BitSet::range(0, WORKERS));
            let mut queue = ShortestByProfile::new(&shape);
            let mut means = Sizes::new(SizeSource::Profile, &shape);
            let (mut waiting, mut running): (Vec<Job>, Vec<Job>) = (Vec::new(), Vec::new());
            let left_ns = |means: &Sizes, job: &Job| means.of(job).saturating_sub(job.attained_ns);
            for (at, step) in steps.into_iter().enumerate() {
                match step {
                    Step::Arrive { class } => {
                        let job = Job::new(JobId(at as u32), ClassId(class), at as u64);
                        prop_assert!(queue.push(&mut jobs, &plan, job).is_ok());
                        waiting.push(job);
                    }
                    Step::Begin if running.len() < WORKERS => {
                        let taken = queue.take(0, &jobs, &plan, |_| Some(WorkerId(0)));
                        let Some((&job, _)) = taken else {
                            prop_assert!(waiting.is_empty());
                            continue;
                        };
                        let least_ns = waiting.iter().map(|job| left_ns(&means, job)).min();
                        prop_assert_eq!(Some(left_ns(&means, &job)), least_ns);
                        let most_ns = waiting.iter().filter(|other| other.class == job.class).map(|other| other.attained_ns).max();
                        prop_assert_eq!(Some(job.attained_ns), most_ns);
                        waiting.retain(|other| other.id != job.id);
                        running.push(job);
                    }
                    Step::Begin => {}
                    Step::Interrupt { ran_ns } if !running.is_empty() => {
                        let mut job = running.remove(0);
                        job.attained_ns += ran_ns;
                        queue.requeue(&mut jobs, &plan, job);
                        waiting.push(job);
                    }
                    Step::End { ran_ns } if !running.is_empty() => {
                        let job = running.remove(0);
                        let cpu_ns = job.attained_ns + ran_ns;
                        queue.completed(job.class, cpu_ns);
                        means.completed(job.class, cpu_ns);
                    }
                    Step::Interrupt { .. } | Step::End { .. } => {}
                }
                prop_assert_eq!(queue.waiting(), waiting.len());
                let of_class = waiting.iter().filter(|job| job.class == ClassId(1)).count();
                prop_assert_eq!(queue.waiting_of(ClassId(1)), of_class);
                let begun = waiting.iter().filter(|job| job.class == ClassId(1) && job.attained_ns > 0);
                prop_assert!(begun.count() <= WORKERS);
            }
        }
    }
}
