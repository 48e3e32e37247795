//! What a pool takes in, and of how much of it the policy hears.
//!
//! A policy orders what it was told of. Before it stands this, where anybody in a program may submit: how many jobs of a class may wait, and how long they may expect to;
//! how many workers a class may have; how many jobs may have begun. Jobs beyond the last two wait in the queue of their class, first come first served, and the policy hears of them later.
//! The queues are the engine's; here each class is counts and a mean.

use super::begun_limit::BegunLimit;
use crate::ClassId;
use alloc::vec::Vec;

/// A full pool sheds a job of a class whose mean is at least so many times the newcomer's.
const MUCH_LONGER: f64 = 4.0;

/// One job in so many moves the mean by which waits are predicted.
const MEAN_OVER: f64 = 32.0;

/// The limits of all classes together.
#[derive(Clone, Copy, Debug)]
pub struct AdmissionLimits {
    /// Workers of the pool, at least one.
    pub workers: usize,
    /// The most jobs that wait.
    pub capacity: usize,
    /// How the classes share the jobs that may have begun.
    pub begun: BegunLimit,
}

impl AdmissionLimits {
    /// The most jobs of which the policy hears at a time: those that wait, and what the workers hold.
    #[must_use]
    pub fn most_heard(&self) -> usize {
        self.capacity + 2 * self.workers
    }
}

/// The limits of one class.
#[derive(Clone, Copy, Debug)]
pub struct ClassAdmission {
    /// The mean service time to begin with, ns; 0: unknown until a job has ended.
    pub mean_ns: f64,
    /// A job that would end later than so long after its submission is refused, ns.
    pub slo_ns: Option<u64>,
    /// The most workers of the class at a time.
    pub workers_at_most: usize,
    /// The most jobs of the class that wait.
    pub queue_limit: usize,
    /// A job that has not begun so long after its submission is shed, ns.
    pub begin_within_ns: Option<u64>,
}

impl ClassAdmission {
    /// No limit, and nothing known.
    pub const OPEN: Self = Self {
        mean_ns: 0.0,
        slo_ns: None,
        workers_at_most: usize::MAX,
        queue_limit: usize::MAX,
        begin_within_ns: None,
    };
}

/// Whether a job may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admits {
    /// It may.
    Job,
    /// It may if the youngest job of this class, which has one that waits, is shed.
    InPlaceOf(ClassId),
    /// It may not.
    Nothing,
}

/// One class, as the limits see it.
#[derive(Clone, Copy, Debug)]
struct ClassLoad {
    limits: ClassAdmission,
    mean_ns: f64,
    waiting: usize,
    /// Jobs that the policy has heard of and that have not ended.
    heard: usize,
    /// Those of them that no worker began: as many as wait, or more where jobs left, or fewer where a limit holds.
    unbegun: usize,
}

/// See the [module](self).
#[derive(Clone, Debug)]
pub struct AdmissionControl {
    limits: AdmissionLimits,
    classes: Vec<ClassLoad>,
    waiting: usize,
    heard: usize,
    /// Whether jobs wait of which the policy would hear if another class had fewer.
    is_starved: bool,
}

impl AdmissionControl {
    /// For classes with these limits.
    #[must_use]
    pub fn new(limits: AdmissionLimits, classes: impl Iterator<Item = ClassAdmission>) -> Self {
        let load = |limits: ClassAdmission| ClassLoad {
            mean_ns: limits.mean_ns,
            limits,
            waiting: 0,
            heard: 0,
            unbegun: 0,
        };
        Self {
            limits,
            classes: classes.map(load).collect(),
            waiting: 0,
            heard: 0,
            is_starved: false,
        }
    }

    /// Jobs of the class that wait.
    #[inline]
    #[must_use]
    pub fn waiting(&self, class: ClassId) -> usize {
        self.classes[class.index()].waiting
    }

    /// The mean service time of the class, ns; 0 where nothing is known.
    #[inline]
    #[must_use]
    pub fn mean_ns(&self, class: ClassId) -> f64 {
        self.classes[class.index()].mean_ns
    }

    /// Whether one more job of the class may wait. A full pool has room for it if a much longer class can give some.
    #[inline]
    #[must_use]
    pub fn admits(&self, class: ClassId) -> Admits {
        let own = &self.classes[class.index()];
        if own.waiting >= own.limits.queue_limit {
            return Admits::Nothing;
        }
        // An idle worker takes it at once: no wait to predict.
        if let Some(slo_ns) = own.limits.slo_ns
            && own.waiting > 0
            && self.predicted_ns(class) + own.mean_ns > slo_ns as f64
        {
            return Admits::Nothing;
        }
        if self.waiting < self.limits.capacity {
            return Admits::Job;
        }
        self.gives_room(own.mean_ns)
            .map_or(Admits::Nothing, Admits::InPlaceOf)
    }

    /// The wait of a job of the class that came now, ns: what waits of its own and of shorter classes, over the workers it may have.
    #[must_use]
    pub fn predicted_ns(&self, class: ClassId) -> f64 {
        let own = &self.classes[class.index()];
        let ahead = self
            .classes
            .iter()
            .filter(|other| other.mean_ns <= own.mean_ns);
        let work_ns: f64 = ahead
            .map(|other| other.mean_ns * other.waiting as f64)
            .sum();
        work_ns / self.limits.workers.min(own.limits.workers_at_most) as f64
    }

    /// The longest class that has a job waiting, if it is much longer than this mean.
    fn gives_room(&self, mean_ns: f64) -> Option<ClassId> {
        let waiting = self
            .classes
            .iter()
            .enumerate()
            .filter(|(_, other)| other.waiting > 0);
        let (longest, other) = waiting.max_by(|(_, a), (_, b)| a.mean_ns.total_cmp(&b.mean_ns))?;
        let is_much_longer = mean_ns > 0.0 && other.mean_ns >= MUCH_LONGER * mean_ns;
        is_much_longer.then_some(ClassId(longest as u16))
    }

    /// What of the class was submitted before this time and has not begun is shed.
    #[inline]
    #[must_use]
    pub fn too_late_before_ns(&self, now_ns: u64, class: ClassId) -> Option<u64> {
        let within_ns = self.classes[class.index()].limits.begin_within_ns?;
        Some(now_ns.saturating_sub(within_ns))
    }

    /// A job of the class waits.
    #[inline]
    pub fn queued(&mut self, class: ClassId) {
        self.classes[class.index()].waiting += 1;
        self.waiting += 1;
    }

    /// A job of the class waits no more: it begins, was shed, or its owner took it back.
    #[inline]
    pub fn unqueued(&mut self, class: ClassId) {
        self.classes[class.index()].waiting -= 1;
        self.waiting -= 1;
    }

    /// Whether the policy hears of one more job of the class now. The caller tells it, and that it did ([`heard`](Self::heard)); if it cannot, [`starved`](Self::starved).
    #[inline]
    #[must_use]
    pub fn lets_hear(&mut self, class: ClassId) -> bool {
        let own = &self.classes[class.index()];
        if own.unbegun >= own.waiting || own.heard >= own.limits.workers_at_most {
            return false;
        }
        let has_room = self.heard < self.limits.most_heard()
            && self.limits.begun.has_room(own.heard, self.heard);
        self.is_starved |= !has_room;
        has_room
    }

    /// The policy heard of a job of the class.
    #[inline]
    pub fn heard(&mut self, class: ClassId) {
        let own = &mut self.classes[class.index()];
        own.heard += 1;
        own.unbegun += 1;
        self.heard += 1;
    }

    /// The policy had no room for it: it is asked again after the next end.
    pub fn starved(&mut self) {
        self.is_starved = true;
    }

    /// A worker begins a job of the class of which the policy had heard.
    #[inline]
    pub fn began(&mut self, class: ClassId) {
        self.classes[class.index()].unbegun -= 1;
    }

    /// Whether the policy knows of more jobs of the class than wait: one may be taken back from it ([`began`](Self::began), then [`ended`](Self::ended)).
    #[inline]
    #[must_use]
    pub fn has_surplus(&self, class: ClassId) -> bool {
        let own = &self.classes[class.index()];
        own.unbegun > own.waiting
    }

    /// A job of which the policy had heard is over. Returns whether it may hear of jobs of any class now, not of this one alone.
    #[inline]
    #[must_use]
    pub fn ended(&mut self, class: ClassId) -> bool {
        self.classes[class.index()].heard -= 1;
        self.heard -= 1;
        core::mem::take(&mut self.is_starved)
    }

    /// A run of the class took so long, ns.
    #[inline]
    pub fn ran(&mut self, class: ClassId, cpu_ns: u64) {
        let mean_ns = &mut self.classes[class.index()].mean_ns;
        let off_ns = cpu_ns as f64 - *mean_ns;
        *mean_ns += if *mean_ns > 0.0 {
            off_ns / MEAN_OVER
        } else {
            off_ns
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    const SHORT: ClassId = ClassId(0);
    const LONG: ClassId = ClassId(1);

    fn control(capacity: usize, short: ClassAdmission) -> AdmissionControl {
        let limits = AdmissionLimits {
            workers: 2,
            capacity,
            begun: BegunLimit::NONE,
        };
        let long = ClassAdmission {
            mean_ns: 100.0,
            ..ClassAdmission::OPEN
        };
        AdmissionControl::new(limits, [short, long].into_iter())
    }

    const SHORTS: ClassAdmission = ClassAdmission {
        mean_ns: 10.0,
        ..ClassAdmission::OPEN
    };

    #[test]
    fn a_full_pool_gives_a_short_the_place_of_a_much_longer_job_and_no_other() {
        let mut control = control(2, SHORTS);
        control.queued(LONG);
        control.queued(SHORT);
        assert_eq!(control.admits(SHORT), Admits::InPlaceOf(LONG));
        assert_eq!(control.admits(LONG), Admits::Nothing);
        control.unqueued(LONG);
        control.queued(SHORT);
        assert_eq!(control.admits(SHORT), Admits::Nothing);
        control.unqueued(SHORT);
        assert_eq!(control.admits(LONG), Admits::Job);
    }

    #[test]
    fn a_job_that_would_miss_its_slo_is_refused_unless_none_waits() {
        let slo_ns = Some(35);
        let mut control = control(100, ClassAdmission { slo_ns, ..SHORTS });
        // Longs go behind it.
        (0..50).for_each(|_| control.queued(LONG));
        let mut taken = 0;
        while control.admits(SHORT) == Admits::Job {
            control.queued(SHORT);
            taken += 1;
        }
        // Five that wait take 25 ns of two workers, and the job itself 10.
        assert_eq!(taken, 6);
        assert_eq!(control.predicted_ns(SHORT), 30.0);
        (0..taken).for_each(|_| control.unqueued(SHORT));
        (0..100).for_each(|_| control.ran(SHORT, 1_000_000));
        assert_eq!(control.admits(SHORT), Admits::Job);
    }

    #[test]
    fn what_has_not_begun_in_time_is_late() {
        let within = ClassAdmission {
            begin_within_ns: Some(100),
            ..SHORTS
        };
        let control = control(1, within);
        assert_eq!(control.too_late_before_ns(150, SHORT), Some(50));
        assert_eq!(control.too_late_before_ns(50, SHORT), Some(0));
        assert_eq!(control.too_late_before_ns(150, LONG), None);
    }

    /// Jobs of one class in a pool.
    #[derive(Clone, Copy, Default, PartialEq, Debug)]
    struct JobCounts {
        waiting: usize,
        /// Those of them of which the policy heard.
        heard: usize,
        running: usize,
    }

    /// A pool of which no job has a body: counts beside those of its limits.
    struct CountedPool {
        control: AdmissionControl,
        jobs: [JobCounts; 2],
    }

    impl CountedPool {
        fn hear(&mut self, class: ClassId) {
            while self.control.lets_hear(class) {
                self.control.heard(class);
                self.jobs[class.index()].heard += 1;
            }
        }

        fn submit(&mut self, class: ClassId) {
            if self.control.admits(class) == Admits::Job {
                self.control.queued(class);
                self.jobs[class.index()].waiting += 1;
                self.hear(class);
            }
        }

        fn begin(&mut self, class: ClassId) {
            let jobs = &mut self.jobs[class.index()];
            if jobs.heard > 0 {
                jobs.waiting -= 1;
                jobs.heard -= 1;
                jobs.running += 1;
                self.control.began(class);
                self.control.unqueued(class);
            }
        }

        fn end(&mut self, class: ClassId) {
            if self.jobs[class.index()].running > 0 {
                self.jobs[class.index()].running -= 1;
                let may_hear_of_any = self.control.ended(class);
                self.hear(class);
                if may_hear_of_any {
                    [SHORT, LONG].into_iter().for_each(|other| self.hear(other));
                }
            }
        }
    }

    /// At random events the policy hears of as many jobs as the limits let it and of no more, and all that waits begins in the end.
    #[test]
    fn the_policy_hears_within_the_limits_and_of_all_in_the_end() {
        for seed in 0..2_000 {
            let mut rng = Rng::new(seed);
            let workers = 1 + rng.below(4);
            let limits = AdmissionLimits {
                workers,
                capacity: 1 + rng.below(20),
                begun: BegunLimit::of(rng.below(16), workers),
            };
            let one_worker = ClassAdmission {
                workers_at_most: 1,
                ..ClassAdmission::OPEN
            };
            let classes = [ClassAdmission::OPEN, one_worker].into_iter();
            let mut pool = CountedPool {
                control: AdmissionControl::new(limits, classes),
                jobs: [JobCounts::default(); 2],
            };
            for step in 0..1_000 {
                let class = [SHORT, LONG][rng.below(2)];
                match rng.below(4) {
                    0..2 if step < 200 => pool.submit(class),
                    2 => pool.begin(class),
                    _ => pool.end(class),
                }
                let heard = pool.jobs.map(|jobs| jobs.heard + jobs.running);
                let what = alloc::format!("seed {seed}, step {step}: {:?}, {limits:?}", pool.jobs);
                let mut rest = pool.control.clone();
                let hears_all = ![SHORT, LONG]
                    .map(|class| rest.lets_hear(class))
                    .contains(&true);
                assert!(hears_all, "it would hear of more: {what}");
                assert!(heard[1] <= 1, "{what}");
                assert!(heard[0] + heard[1] <= limits.most_heard(), "{what}");
                assert!(
                    pool.jobs.iter().all(|jobs| jobs.heard <= jobs.waiting),
                    "{what}"
                );
            }
            assert_eq!(
                pool.jobs,
                [JobCounts::default(); 2],
                "seed {seed}: something waits for ever"
            );
        }
    }
}
