//! Any discipline, chosen while running: for systems that are put together by name.

use super::{
    Accounting, CycleStealing, DeficitRoundRobin, Discipline, Earliest, Fifo, Gittins, Mlfq,
    MultiQueue, Preview, Shortest, Typed, WeightedRoundRobin, Withdrawal,
};
use crate::ClassId;
use crate::server::role::{Shed, UrgencyIndex};
use crate::server::{Job, Jobs, Plan, WorkerId};

/// One of the disciplines. A match costs a predicted branch per call, and all these systems share
/// one compiled type.
pub enum AnyDiscipline {
    /// First come, first served.
    Fifo(Fifo),
    /// A queue a class, in the plan's order.
    Typed(Typed),
    /// Least remaining service first.
    Shortest(Shortest),
    /// Earliest deadline first.
    Earliest(Earliest),
    /// Deficit round robin over classes.
    DeficitRoundRobin(DeficitRoundRobin),
    /// Weighted round robin over classes.
    WeightedRoundRobin(WeightedRoundRobin),
    /// Least attained service first, by levels.
    Mlfq(Mlfq),
    /// Least service for a completion first.
    Gittins(Gittins),
    /// Longest wait for its SLO, or least virtual time, first.
    MultiQueue(MultiQueue),
    /// Cycle stealing with a central queue.
    CycleStealing(CycleStealing),
}

macro_rules! each {
    ($any:expr, $discipline:ident => $call:expr) => {
        match $any {
            AnyDiscipline::Fifo($discipline) => $call,
            AnyDiscipline::Typed($discipline) => $call,
            AnyDiscipline::Shortest($discipline) => $call,
            AnyDiscipline::Earliest($discipline) => $call,
            AnyDiscipline::DeficitRoundRobin($discipline) => $call,
            AnyDiscipline::WeightedRoundRobin($discipline) => $call,
            AnyDiscipline::Mlfq($discipline) => $call,
            AnyDiscipline::Gittins($discipline) => $call,
            AnyDiscipline::MultiQueue($discipline) => $call,
            AnyDiscipline::CycleStealing($discipline) => $call,
        }
    };
}

impl Discipline for AnyDiscipline {
    #[inline]
    fn push(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) -> Result<(), Shed> {
        each!(self, discipline => discipline.push(jobs, plan, job))
    }

    #[inline]
    fn requeue(&mut self, jobs: &mut Jobs, plan: &Plan, job: Job) {
        each!(self, discipline => discipline.requeue(jobs, plan, job));
    }

    #[inline]
    fn take<'a>(
        &mut self,
        now_ns: u64,
        jobs: &'a Jobs,
        plan: &Plan,
        place: impl FnMut(&Job) -> Option<WorkerId>,
    ) -> Option<(&'a Job, WorkerId)> {
        each!(self, discipline => discipline.take(now_ns, jobs, plan, place))
    }

    #[inline]
    fn waiting(&self) -> usize {
        each!(self, discipline => discipline.waiting())
    }

    fn waiting_of(&self, class: ClassId) -> usize {
        each!(self, discipline => discipline.waiting_of(class))
    }

    #[inline]
    fn wants(&self, plan: &Plan, worker: WorkerId) -> bool {
        each!(self, discipline => discipline.wants(plan, worker))
    }

    fn replanned(&mut self, plan: &Plan) {
        each!(self, discipline => discipline.replanned(plan));
    }

    fn adopt(&mut self, fresh: &Self) {
        match (self, fresh) {
            (Self::Fifo(own), Self::Fifo(fresh)) => own.adopt(fresh),
            (Self::Typed(own), Self::Typed(fresh)) => own.adopt(fresh),
            (Self::Shortest(own), Self::Shortest(fresh)) => own.adopt(fresh),
            (Self::Earliest(own), Self::Earliest(fresh)) => own.adopt(fresh),
            (Self::DeficitRoundRobin(own), Self::DeficitRoundRobin(fresh)) => own.adopt(fresh),
            (Self::WeightedRoundRobin(own), Self::WeightedRoundRobin(fresh)) => own.adopt(fresh),
            (Self::Mlfq(own), Self::Mlfq(fresh)) => own.adopt(fresh),
            (Self::Gittins(own), Self::Gittins(fresh)) => own.adopt(fresh),
            (Self::MultiQueue(own), Self::MultiQueue(fresh)) => own.adopt(fresh),
            (Self::CycleStealing(own), Self::CycleStealing(fresh)) => own.adopt(fresh),
            // Which discipline it is does not change while it holds requests.
            _ => {}
        }
    }
}

impl Withdrawal for AnyDiscipline {
    fn take_unstarted<'a>(
        &mut self,
        jobs: &'a Jobs,
        plan: &Plan,
        class: Option<ClassId>,
    ) -> Option<&'a Job> {
        each!(self, discipline => discipline.take_unstarted(jobs, plan, class))
    }
}

impl Preview for AnyDiscipline {
    #[inline]
    fn peek<'a>(&self, jobs: &'a Jobs, others: usize) -> Option<&'a Job> {
        each!(self, discipline => discipline.peek(jobs, others))
    }

    fn front_sequence(&self, jobs: &Jobs) -> Option<u64> {
        each!(self, discipline => discipline.front_sequence(jobs))
    }

    #[inline]
    fn index(&self, class: ClassId, attained_ns: u64) -> Option<UrgencyIndex> {
        each!(self, discipline => discipline.index(class, attained_ns))
    }
}

impl Accounting for AnyDiscipline {
    fn resumed(&mut self, class: ClassId) {
        each!(self, discipline => discipline.resumed(class));
    }

    #[inline]
    fn served(&mut self, class: ClassId, served_ns: u64) {
        each!(self, discipline => discipline.served(class, served_ns));
    }

    #[inline]
    fn completed(&mut self, class: ClassId, cpu_ns: u64) {
        each!(self, discipline => discipline.completed(class, cpu_ns));
    }
}
