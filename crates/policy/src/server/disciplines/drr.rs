//! Deficit round robin (Shreedhar and Varghese, SIGCOMM '95): every class that waits gets the same
//! service time, whatever the size of its requests.

use super::classes::ClassQueues;
use super::{Accounting, Discipline, Sizes, WithoutPreview, WithoutWithdrawal};
use crate::ClassId;
use crate::server::role::Shed;
use crate::server::{Job, Jobs, Plan, WorkerId};
use alloc::vec;
use alloc::vec::Vec;

/// Goes round the classes. Each turn adds a quantum to the class's deficit, and the class sends
/// what its deficit covers; what does not wait has no deficit.
pub struct DeficitRoundRobin {
    queues: ClassQueues,
    sizes: Sizes,
    quantum_ns: u64,
    /// By class, ns.
    deficit_ns: Vec<u64>,
    /// Whose turn it is.
    turn: ClassId,
}

impl DeficitRoundRobin {
    /// `classes` queues (UNKNOWN included) of at most `limit` requests each; `quantum_ns` is above
    /// 0.
    ///
    /// # Panics
    /// When the quantum is 0.
    #[must_use]
    pub fn new(classes: usize, limit: usize, quantum_ns: u64, sizes: Sizes) -> Self {
        assert!(quantum_ns > 0, "a turn must be worth something");
        Self {
            queues: ClassQueues::new(classes, limit),
            sizes,
            quantum_ns,
            deficit_ns: vec![0; classes],
            turn: ClassId(0),
        }
    }

    /// The class that sends next. Its deficit covers its head from here on, so that asking again
    /// changes nothing.
    #[inline]
    fn choose(&mut self, jobs: &Jobs) -> Option<ClassId> {
        if self.rounds_to(jobs, self.turn) == Some(0) {
            return Some(self.turn);
        }
        let next = self.queues.next_round(self.turn)?;
        self.skip_rounds(jobs);
        self.turn = next;
        loop {
            self.deficit_ns[self.turn.index()] += self.quantum_ns;
            if self.rounds_to(jobs, self.turn) == Some(0) {
                return Some(self.turn);
            }
            self.turn = self.queues.next_round(self.turn)?;
        }
    }

    /// Quanta that the class lacks for its head; `None` when it does not wait.
    #[inline]
    fn rounds_to(&self, jobs: &Jobs, class: ClassId) -> Option<u64> {
        let size_ns = self.sizes.of(self.queues.front(jobs, class)?);
        let lacks_ns = size_ns.saturating_sub(self.deficit_ns[class.index()]);
        Some(lacks_ns.div_ceil(self.quantum_ns))
    }

    /// Rounds in which nobody could send, all at once: a small quantum costs no more than a large
    /// one.
    fn skip_rounds(&mut self, jobs: &Jobs) {
        let classes = self.queues.occupied().iter();
        let lacking = classes.filter_map(|class| self.rounds_to(jobs, ClassId(class as u16)));
        let in_vain = lacking.min().unwrap_or(0).saturating_sub(1);
        if in_vain > 0 {
            for class in self.queues.occupied().iter() {
                self.deficit_ns[class] += in_vain * self.quantum_ns;
            }
        }
    }
}

impl Discipline for DeficitRoundRobin {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) -> Result<(), Shed> {
        self.queues.push(jobs, job)
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, _plan: &Plan, job: Job) {
        self.queues.push_back(jobs, job);
    }

    #[inline]
    fn take<'a>(
        &mut self,
        _now_ns: u64,
        jobs: &'a Jobs,
        _plan: &Plan,
        mut place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        let class = self.choose(jobs)?;
        let worker = place(self.queues.front(jobs, class)?)?;
        let job = self.queues.pop(jobs, class)?;
        let deficit_ns = &mut self.deficit_ns[class.index()];
        *deficit_ns = match self.queues.waiting_of(class) {
            0 => 0,
            _ => *deficit_ns - self.sizes.of(job),
        };
        Some((job, worker))
    }

    #[inline]
    fn waiting(&self) -> usize {
        self.queues.waiting()
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        self.queues.waiting_of(class)
    }

    #[inline]
    fn wants(&self, _plan: &Plan, _worker: WorkerId) -> bool {
        self.waiting() > 0
    }

    fn replanned(&mut self, _plan: &Plan) {}

    fn adopt(&mut self, fresh: &Self) {
        self.quantum_ns = fresh.quantum_ns;
    }
}

impl WithoutWithdrawal for DeficitRoundRobin {}
impl WithoutPreview for DeficitRoundRobin {}

impl Accounting for DeficitRoundRobin {
    fn resumed(&mut self, _class: ClassId) {}

    fn served(&mut self, _class: ClassId, _served_ns: u64) {}

    #[inline]
    fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        self.sizes.completed(class, cpu_ns);
    }
}
