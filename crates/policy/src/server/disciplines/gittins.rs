//! Gittins's order: first is whoever promises a completion for the least service, by what is learnt of its class and by the service it has had.

use super::classes::QueuedByClass;
use super::service_lengths::{BUCKETS, ServiceLengths, bucket, end_ns};
use super::{Accounting, Discipline, Preview, UNTOUCHED_NS, WithoutWithdrawal};
use crate::server::job::List;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, Jobs, Plan, Shape, WorkerId};
use crate::{BitSet, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// A queue for each class and age; the least index comes first, and of it whoever came first, so that classes that are as long are one queue. An index is that
/// of the age at which its bucket begins. It is least remaining service first where a class's requests are all as long, least attained first where nothing is known, and between the two whatever makes the mean
/// latency least (Gittins, J. R. Stat. Soc. B 41, 1979, for one worker; for several in heavy traffic Scully, Grosof and Harchol-Balter, SIGMETRICS 2021).
pub struct Gittins {
    /// By class, UNKNOWN last.
    classes: Vec<QueuedByAge>,
    /// Classes of which something waits.
    occupied: BitSet,
    waiting: usize,
    counts: QueuedByClass,
    /// Whose head is first.
    first: Option<ClassId>,
}

/// The requests of a class that wait.
struct QueuedByAge {
    lengths: ServiceLengths,
    /// By bucket of ages, with the order of the head among all.
    queues: Vec<(List, u64)>,
    occupied: BitSet,
    first: Option<FirstOfClass>,
}

/// The head of a class, in the order of heads: by index, then by admission.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct FirstOfClass {
    index_ns: u64,
    sequence: u64,
    bucket: usize,
}

impl QueuedByAge {
    fn new(mean_ns: f64) -> Self {
        Self {
            lengths: ServiceLengths::declared(mean_ns),
            queues: vec![(List::EMPTY, 0); BUCKETS],
            occupied: BitSet::EMPTY,
            first: None,
        }
    }

    /// Whether it heads its queue.
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, job: Job, keeps_its_place: bool) -> bool {
        let bucket = bucket(job.attained_ns);
        let (queue, _) = &mut self.queues[bucket];
        let heads = keeps_its_place || queue.len() == 0;
        if keeps_its_place {
            queue.push_front(jobs, job);
        } else {
            queue.push_back(jobs, job);
        }
        if heads {
            self.head_changed(jobs, bucket);
        }
        heads
    }

    #[inline]
    fn head_changed(&mut self, jobs: &Jobs, bucket: usize) {
        let (queue, sequence) = &mut self.queues[bucket];
        *sequence = queue.front_sequence(jobs);
        self.occupied.set(bucket, queue.len() > 0);
        self.find_first();
    }

    #[inline]
    fn find_first(&mut self) {
        let heads = self.occupied.iter().map(|bucket| FirstOfClass {
            index_ns: self.lengths.index_ns(bucket),
            sequence: self.queues[bucket].1,
            bucket,
        });
        self.first = heads.min();
    }

    #[inline]
    fn front<'a>(&self, jobs: &'a Jobs) -> Option<&'a Job> {
        self.queues[self.first?.bucket].0.front(jobs)
    }
}

impl Gittins {
    /// At most the shape's limit of requests of each class wait. What a class declares of itself counts as one completion.
    #[must_use]
    pub fn new(shape: &Shape) -> Self {
        let means = shape.classes.iter().map(|hint| hint.mean_ns).chain([0.0]);
        Self {
            classes: means.map(QueuedByAge::new).collect(),
            occupied: BitSet::EMPTY,
            waiting: 0,
            counts: QueuedByClass::new(shape.queues(), shape.queue_limit),
            first: None,
        }
    }

    #[inline]
    fn enter(&mut self, jobs: &mut Jobs, job: Job, keeps_its_place: bool) {
        let class = job.class;
        self.counts.entered(class);
        self.waiting += 1;
        if self.classes[class.index()].push(jobs, job, keeps_its_place) {
            self.occupied.insert(class.index());
            self.find_first();
        }
    }

    #[inline]
    fn find_first(&mut self) {
        let firsts = self.occupied.iter();
        let firsts = firsts.map(|class| (self.classes[class].first, class));
        self.first = firsts.min().map(|(_, class)| ClassId(class as u16));
    }
}

impl Discipline for Gittins {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        self.counts.admit(job.class)?;
        self.enter(jobs, job, false);
        Ok(())
    }

    /// Who is as old as before, by the buckets, keeps its place.
    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        let queued_ns = jobs.get(job.id).attained_ns;
        let has_run = job.attained_ns > queued_ns + UNTOUCHED_NS;
        let as_old = bucket(job.attained_ns) == bucket(queued_ns);
        self.enter(jobs, job, has_run && as_old);
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let class = &mut self.classes[self.first?.index()];
        let bucket = class.first?.bucket;
        let (queue, _) = &mut class.queues[bucket];
        let worker = place(queue.front(jobs)?)?;
        let job = queue.pop_front(jobs)?;
        class.head_changed(jobs, bucket);
        self.occupied.set(job.class.index(), class.first.is_some());
        self.find_first();
        self.waiting -= 1;
        self.counts.left(job.class);
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.waiting
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.counts.waiting_of(class)
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    fn adopt(&mut self, _fresh: &Self) {}
}

impl WithoutWithdrawal for Gittins {}

impl Preview for Gittins {
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        if others > 0 {
            return None;
        }
        self.classes[self.first?.index()].front(jobs)
    }

    fn front_sequence(&self, _jobs: &Jobs) -> Option<u64> {
        None
    }

    #[inline]
    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex> {
        let bucket = bucket(attained_ns);
        Some(UrgencyIndex {
            ns: self.classes[class.index()].lengths.index_ns(bucket),
            until_ns: end_ns(bucket),
        })
    }
}

impl Accounting for Gittins {
    fn resumed(&mut self, _class: ClassId) {}

    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    #[inline]
    fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        let queued = &mut self.classes[class.index()];
        if queued.lengths.completed(cpu_ns) {
            queued.find_first();
            self.find_first();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gittins;
    use crate::server::disciplines::{Accounting, Discipline, Preview};
    use crate::server::plan::{Order, Plan};
    use crate::server::{Job, JobId, Jobs, Shape, WorkerId};
    use crate::{BitSet, ClassId};
    use alloc::vec::Vec;

    const SHORT: ClassId = ClassId(1);
    const LONG: ClassId = ClassId(0);

    /// Nothing is declared; 200 of each class completed, after 1 and 100 µs.
    fn learnt() -> Gittins {
        let mut queue = Gittins::new(&Shape::new(1).class(0, 0.5).class(0, 0.5));
        for _ in 0..200 {
            queue.completed(SHORT, 1_000);
            queue.completed(LONG, 100_000);
        }
        queue
    }

    fn aged(id: u32, class: ClassId, attained_ns: u64) -> Job {
        let mut job = Job::new(JobId(id), class, 0);
        job.attained_ns = attained_ns;
        job
    }

    fn plan() -> Plan {
        Plan::open(Order::Rank, Vec::new(), BitSet::range(0, 1))
    }

    fn drain(queue: &mut Gittins, jobs: &Jobs) -> Vec<u32> {
        let take = || {
            let taken = queue.take(0, jobs, &plan(), |_| Some(WorkerId(0)));
            taken.map(|(job, _)| job.id.0)
        };
        core::iter::from_fn(take).collect()
    }

    #[test]
    fn shorts_go_first_then_longs_that_are_nearly_done_and_last_who_outlived_its_class() {
        let (mut queue, mut jobs) = (learnt(), Jobs::new(8));
        let fresh = [(0, LONG), (1, SHORT), (2, LONG), (3, SHORT)];
        for (id, class) in fresh {
            assert!(queue.push(&mut jobs, &plan(), aged(id, class, 0)).is_ok());
        }
        for (id, attained_ns) in [(4, 150_000), (5, 80_000), (6, 50_000)] {
            queue.requeue(&mut jobs, &plan(), aged(id, LONG, attained_ns));
        }
        assert_eq!(queue.peek(&jobs, 0).map(|job| job.id.0), Some(1));
        assert_eq!(drain(&mut queue, &jobs), [1, 3, 5, 6, 0, 2, 4]);
        assert_eq!((queue.waiting(), queue.waiting_of(LONG)), (0, 0));
        assert!(queue.peek(&jobs, 0).is_none());
    }

    #[test]
    fn who_is_as_old_as_before_keeps_its_place_and_others_go_first_where_it_could_not_go_on() {
        let (mut queue, mut jobs) = (learnt(), Jobs::new(3));
        for (ran_ns, order) in [(2_000, [0, 1, 2]), (50, [1, 2, 0])] {
            for id in 0..3 {
                queue.requeue(&mut jobs, &plan(), aged(id, LONG, 50_000));
            }
            let taken = queue.take(0, &jobs, &plan(), |_| Some(WorkerId(0)));
            assert_eq!(taken.map(|(job, _)| job.id.0), Some(0));
            queue.requeue(&mut jobs, &plan(), aged(0, LONG, 50_000 + ran_ns));
            assert_eq!(drain(&mut queue, &jobs), order, "{ran_ns}");
        }
    }

    /// Nobody waits for a class that is as long as its own, whichever came first.
    #[test]
    fn classes_that_are_as_long_are_one_queue() {
        let (mut queue, mut jobs) = (learnt(), Jobs::new(6));
        for request in 0..5_000 {
            queue.completed(SHORT, 100_000 + request % 7);
        }
        for id in 0..6 {
            let class = [SHORT, LONG, LONG, SHORT][id as usize % 4];
            assert!(queue.push(&mut jobs, &plan(), aged(id, class, 0)).is_ok());
        }
        assert_eq!(drain(&mut queue, &jobs), [0, 1, 2, 3, 4, 5]);
    }

    /// What waits is in the order of what is known by now.
    #[test]
    fn what_is_learnt_reorders_what_waits() {
        let (mut queue, mut jobs) = (learnt(), Jobs::new(2));
        for (id, class) in [(0, LONG), (1, SHORT)] {
            assert!(queue.push(&mut jobs, &plan(), aged(id, class, 0)).is_ok());
        }
        for _ in 0..5_000 {
            queue.completed(SHORT, 10_000_000);
        }
        assert_eq!(drain(&mut queue, &jobs), [0, 1]);
    }
}
