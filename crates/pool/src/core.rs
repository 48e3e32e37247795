//! The pool without its threads: what waits, what runs, what became of each job. One lock owns it.
//!
//! It takes the time as an argument and starts nothing, so tests drive it in virtual time.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use headway_policy::server::admission_control::{AdmissionControl, AdmissionLimits, Admits};
use headway_policy::{ClassId, Job, JobId, WorkerId};
use headway_sync::thread::Thread;

use crate::chosen::ChosenJob;
use crate::class_queue::QueuedJob;
use crate::class_state::{BuiltClass, ClassState};
use crate::decisions::{Chosen, Decide, GoesOn};
use crate::error::{ShedReason, SubmitError};
use crate::job::{EarlyEnd, RunEnd, Runnable};
use crate::stats::ClassCounts;
use crate::thread_table::{Rouse, ThreadTable};

/// How far the pool's life has come.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum PoolPhase {
    Open,
    /// Jobs of the pool's own may still submit.
    Draining,
    Over,
}

/// A job as the policy sees it, and the job that it stands for once that was interrupted.
struct Token {
    class: ClassId,
    arrived_ns: u64,
    attained_ns: u64,
    job: Option<Arc<dyn Runnable>>,
}

/// See the [module](self).
pub(crate) struct PoolCore {
    decide: Box<dyn Decide>,
    admission: AdmissionControl,
    classes: Vec<ClassState>,
    tokens: Vec<Option<Token>>,
    free: Vec<JobId>,
    asleep: HashMap<u64, (ClassId, Arc<dyn Runnable>)>,
    pub(crate) threads: ThreadTable,
    pub(crate) phase: PoolPhase,
    /// Jobs that ended without running, to be told once the lock is released.
    pub(crate) ends: Vec<(Arc<dyn Runnable>, EarlyEnd)>,
    /// Threads that wait until all is done.
    pub(crate) idle_waiters: usize,
    /// Accepted and not ended.
    live: usize,
    sequence: u64,
    now_ns: u64,
    pub(crate) interruptions: u64,
    pub(crate) blocked_in_place: u64,
    /// Jobs for which there was no fiber.
    pub(crate) without_fiber: u64,
    interrupts: bool,
}

/// What a [`PoolCore`] is made of.
pub(crate) struct PoolParts {
    pub(crate) decide: Box<dyn Decide>,
    pub(crate) classes: Vec<BuiltClass>,
    pub(crate) threads: ThreadTable,
    pub(crate) limits: AdmissionLimits,
    /// Whether jobs can be interrupted.
    pub(crate) interrupts: bool,
}

impl PoolCore {
    pub(crate) fn new(parts: PoolParts) -> Self {
        let tokens = parts.limits.most_heard();
        let admitted = parts.classes.iter().map(|class| class.admission);
        let admission = AdmissionControl::new(parts.limits, admitted);
        let classes = parts.classes.into_iter().map(ClassState::new);
        Self {
            decide: parts.decide,
            admission,
            classes: classes.collect(),
            tokens: (0..tokens).map(|_| None).collect(),
            free: (0..tokens as u32).rev().map(JobId).collect(),
            asleep: HashMap::new(),
            threads: parts.threads,
            phase: PoolPhase::Open,
            ends: Vec::new(),
            idle_waiters: 0,
            live: 0,
            sequence: 0,
            now_ns: 0,
            interruptions: 0,
            blocked_in_place: 0,
            without_fiber: 0,
            interrupts: parts.interrupts,
        }
    }

    /// Readings of different cores may differ by some cycles; roles see time grow.
    #[inline]
    fn sees(&mut self, now_ns: u64) {
        self.now_ns = self.now_ns.max(now_ns);
    }

    /// Whether every accepted job has ended.
    #[inline]
    pub(crate) fn is_idle(&self) -> bool {
        self.live == 0
    }

    /// Jobs accepted and not ended.
    pub(crate) fn live(&self) -> usize {
        self.live
    }

    /// Takes a job in. `inside`: a job of this pool submits it.
    ///
    /// # Errors
    /// [`SubmitError::ShutDown`] or [`SubmitError::Overloaded`].
    #[inline]
    pub(crate) fn submit(
        &mut self,
        now_ns: u64,
        class: ClassId,
        job: Arc<dyn Runnable>,
        inside: bool,
    ) -> Result<(), SubmitError> {
        self.sees(now_ns);
        let admits = match self.phase {
            PoolPhase::Open => true,
            PoolPhase::Draining => inside,
            PoolPhase::Over => false,
        };
        if !admits {
            self.classes[class.index()].counts.refused += 1;
            return Err(SubmitError::ShutDown);
        }
        self.expire(class);
        if !self.has_room(class) && !self.has_room_without_late(class) {
            return Err(self.refuse(class));
        }
        let state = &mut self.classes[class.index()];
        state.counts.submitted += 1;
        self.live += 1;
        self.enqueue(class, job);
        Ok(())
    }

    fn enqueue(&mut self, class: ClassId, job: Arc<dyn Runnable>) {
        self.sequence += 1;
        job.flags().set_sequence(self.sequence);
        self.classes[class.index()].queue.push(QueuedJob {
            sequence: self.sequence,
            submitted_ns: self.now_ns,
            job,
        });
        self.admission.queued(class);
        self.offer(class);
    }

    /// Whether one more job of the class may wait. A full pool makes room for it if a much longer class can give some.
    fn has_room(&mut self, class: ClassId) -> bool {
        match self.admission.admits(class) {
            Admits::Job => true,
            Admits::InPlaceOf(longer) => {
                let youngest = self.classes[longer.index()].queue.pop_youngest();
                let youngest = youngest.expect("the class has a job that waits");
                self.shed(longer, youngest, ShedReason::MadeRoom);
                self.withdraw_surplus(longer);
                true
            }
            Admits::Nothing => false,
        }
    }

    /// The same once nothing of any class waits that is too late to begin.
    #[cold]
    fn has_room_without_late(&mut self, class: ClassId) -> bool {
        for other in 0..self.classes.len() {
            self.expire(ClassId(other as u16));
        }
        self.has_room(class)
    }

    fn shed(&mut self, class: ClassId, queued: QueuedJob, reason: ShedReason) {
        self.admission.unqueued(class);
        self.live -= 1;
        let counts = &mut self.classes[class.index()].counts;
        counts.shed += 1;
        counts.shed_too_late += u64::from(reason == ShedReason::TooLate);
        self.ends.push((queued.job, EarlyEnd::Shed(reason)));
    }

    /// Sheds what did not begin in time.
    #[inline]
    fn expire(&mut self, class: ClassId) {
        let Some(before_ns) = self.admission.too_late_before_ns(self.now_ns, class) else {
            return;
        };
        while let Some(late) = self.classes[class.index()].queue.pop_before(before_ns) {
            self.shed(class, late, ShedReason::TooLate);
        }
    }

    #[cold]
    fn refuse(&mut self, class: ClassId) -> SubmitError {
        let predicted_ns = self.admission.predicted_ns(class);
        let state = &mut self.classes[class.index()];
        state.counts.refused += 1;
        SubmitError::Overloaded {
            class: state.name.clone(),
            queued: self.admission.waiting(class),
            retry_after: Duration::from_nanos(predicted_ns.max(1e6) as u64),
        }
    }

    /// Has the policy hear of jobs of the class that wait, as far as the limits let it.
    #[inline]
    fn offer(&mut self, class: ClassId) {
        while self.admission.lets_hear(class) {
            let id = self.free.pop().expect("a token for each job heard of");
            let mut job = Job::new(id, class, self.now_ns);
            job.flow = self.sequence as u32;
            if !self.decide.arrived(self.now_ns, job) {
                // No policy has a limit of its own below the pool's; one that had would be asked again after the next end.
                self.free.push(id);
                return self.admission.starved();
            }
            self.admission.heard(class);
            self.tokens[id.index()] = Some(Token {
                class,
                arrived_ns: self.now_ns,
                attained_ns: 0,
                job: None,
            });
        }
    }

    /// A token is over.
    #[inline]
    fn release(&mut self, id: JobId) {
        let Some(token) = self.tokens[id.index()].take() else {
            return;
        };
        self.free.push(id);
        let may_hear_of_any = self.admission.ended(token.class);
        self.offer(token.class);
        if may_hear_of_any {
            (0..self.classes.len() as u16).for_each(|class| self.offer(ClassId(class)));
        }
    }

    /// What a thread runs next; `only` on this worker if that is given.
    #[inline]
    pub(crate) fn take(&mut self, now_ns: u64, only: Option<WorkerId>) -> Option<ChosenJob> {
        self.sees(now_ns);
        loop {
            if self.phase == PoolPhase::Over {
                // The dispatcher's thread is gone, or about to, and so is this one if it finds nothing.
                self.decide.dispatch(self.now_ns);
            }
            let chosen = self.decide.choose(self.now_ns, only)?;
            let token = self.tokens[chosen.token.index()].as_mut();
            let token = token.expect("a policy runs the tokens it was given");
            let class = token.class;
            if let Some(job) = token.job.take() {
                return Some(self.begin(chosen, job, true));
            }
            self.expire(class);
            self.admission.began(class);
            let state = &mut self.classes[class.index()];
            if let Some(queued) = state.queue.pop() {
                state.running += 1;
                let waited_ns = self.now_ns.saturating_sub(queued.submitted_ns);
                state.runs.wait.record(waited_ns);
                self.admission.unqueued(class);
                return Some(self.begin(chosen, queued.job, false));
            }
            // Its job left. To the policy that is one more job of its class, of the usual length: the profile stays as it is.
            let usual_ns = self.admission.mean_ns(class).max(1.0) as u64;
            self.finish_token(chosen, usual_ns);
        }
    }

    /// The dispatcher hears what happened, and places jobs at workers.
    pub(crate) fn dispatch(&mut self, now_ns: u64) {
        self.sees(now_ns);
        self.decide.dispatch(self.now_ns);
    }

    #[cfg(test)]
    pub(crate) fn awaits_dispatcher(&self) -> bool {
        self.decide.awaits_dispatcher()
    }

    #[inline]
    fn begin(&mut self, chosen: Chosen, job: Arc<dyn Runnable>, is_resumed: bool) -> ChosenJob {
        let seen = self.seen(chosen.token);
        let class = seen.class;
        let state = &mut self.classes[class.index()];
        state.runs.slices += 1;
        let interruptible = self.interrupts && !state.uninterrupted && !job.flags().is_future;
        let slice_ns = interruptible.then(|| self.decide.started(self.now_ns, &seen, chosen));
        ChosenJob {
            chosen,
            class,
            job,
            attained_ns: seen.attained_ns,
            is_resumed,
            slice_ns,
            from_ns: self.now_ns,
        }
    }

    /// The token as the policy sees it.
    fn seen(&self, id: JobId) -> Job {
        let token = self.tokens[id.index()].as_ref().expect("a live token");
        let mut job = Job::new(id, token.class, token.arrived_ns);
        job.attained_ns = token.attained_ns;
        job
    }

    fn finish_token(&mut self, chosen: Chosen, cpu_ns: u64) {
        let job = self.seen(chosen.token);
        self.decide
            .finished(self.now_ns, chosen.worker, &job, cpu_ns);
        self.release(chosen.token);
    }

    /// See [`Decide::events`].
    pub(crate) fn events(&self) -> Arc<AtomicU64> {
        self.decide.events()
    }

    /// Whether the job of this class that runs on this worker goes on. Since it was last asked, the job has met so many probes as its slice was over.
    pub(crate) fn goes_on(
        &mut self,
        now_ns: u64,
        class: ClassId,
        worker: WorkerId,
        probes_met: u64,
    ) -> Option<GoesOn> {
        self.sees(now_ns);
        let longer = self.decide.goes_on(self.now_ns, worker);
        let class = &mut self.classes[class.index()];
        class.probes_met += probes_met;
        class.runs.interruptions_asked += u64::from(longer.is_none());
        longer
    }

    /// A job made way.
    pub(crate) fn interrupted(&mut self, class: ClassId) {
        self.interruptions += 1;
        self.classes[class.index()].runs.interruptions += 1;
    }

    /// The state of a class.
    pub(crate) fn class(&mut self, class: ClassId) -> &mut ClassState {
        &mut self.classes[class.index()]
    }

    /// The job was interrupted after so much service in all, ns, and waits to go on.
    pub(crate) fn yielded(
        &mut self,
        now_ns: u64,
        chosen: Chosen,
        attained_ns: u64,
        job: Arc<dyn Runnable>,
    ) {
        self.sees(now_ns);
        if let Some(token) = &mut self.tokens[chosen.token.index()] {
            token.attained_ns = attained_ns.max(token.attained_ns + 1);
            token.job = Some(job);
        }
        let job = self.seen(chosen.token);
        self.decide.yielded(self.now_ns, chosen.worker, &job);
    }

    /// The thread leaves its worker in the middle of the job, after so much service, ns.
    pub(crate) fn leave_worker(&mut self, now_ns: u64, chosen: Chosen, cpu_ns: u64) {
        self.sees(now_ns);
        self.finish_token(chosen, cpu_ns);
    }

    /// A job ended, or a future is not ready. `chosen` is its worker, unless it left that before or ran within another job.
    #[inline]
    pub(crate) fn ended(&mut self, now_ns: u64, end: JobEnd, job: &Arc<dyn Runnable>) {
        self.sees(now_ns);
        let JobEnd {
            class,
            ran,
            cpu_ns,
            chosen,
        } = end;
        let state = &mut self.classes[class.index()];
        state.runs.service.record(cpu_ns);
        state.running -= 1;
        self.admission.ran(class, cpu_ns);
        if ran == RunEnd::Pending {
            self.rest(class, job);
        } else {
            self.live -= 1;
            let counts = &mut self.classes[class.index()].counts;
            match ran {
                RunEnd::Done => counts.done += 1,
                RunEnd::Panicked => counts.panicked += 1,
                RunEnd::Stopped | RunEnd::Pending => counts.cancelled += 1,
            }
        }
        if let Some(chosen) = chosen {
            self.finish_token(chosen, cpu_ns);
        }
    }

    /// A future is not ready: it sleeps, waits again, or ends here.
    fn rest(&mut self, class: ClassId, job: &Arc<dyn Runnable>) {
        if self.phase == PoolPhase::Over {
            return self.end_early(class, Arc::clone(job), EarlyEnd::Abandoned);
        }
        if job.flags().is_cancelled() {
            return self.end_early(class, Arc::clone(job), EarlyEnd::Cancelled);
        }
        if job.falls_asleep() {
            self.classes[class.index()].asleep += 1;
            let key = job.flags().sequence();
            self.asleep.insert(key, (class, Arc::clone(job)));
        } else {
            self.enqueue(class, Arc::clone(job));
        }
    }

    /// Ends a job that is in no queue any more.
    fn end_early(&mut self, class: ClassId, job: Arc<dyn Runnable>, why: EarlyEnd) {
        self.live -= 1;
        let counts = &mut self.classes[class.index()].counts;
        match why {
            EarlyEnd::Abandoned => counts.abandoned += 1,
            _ => counts.cancelled += 1,
        }
        self.ends.push((job, why));
    }

    /// A future that slept was woken. `false`: it has ended meanwhile.
    pub(crate) fn wakes_up(&mut self, now_ns: u64, job: &Arc<dyn Runnable>) -> bool {
        self.sees(now_ns);
        let Some((class, job)) = self.asleep.remove(&job.flags().sequence()) else {
            return false;
        };
        self.classes[class.index()].asleep -= 1;
        self.enqueue(class, job);
        true
    }

    /// The owner does not want the result any more: what waits or sleeps ends, what runs is told.
    pub(crate) fn cancel(&mut self, class: ClassId, job: &Arc<dyn Runnable>) {
        job.flags().cancel();
        let key = job.flags().sequence();
        if let Some(queued) = self.unqueue(class, key) {
            self.end_early(class, queued.job, EarlyEnd::Cancelled);
        } else if let Some((class, job)) = self.asleep.remove(&key) {
            self.classes[class.index()].asleep -= 1;
            self.end_early(class, job, EarlyEnd::Cancelled);
        }
    }

    /// Takes a job that waits out, to run it within the job that waits for it. The caller runs it.
    pub(crate) fn take_here(&mut self, class: ClassId, job: &Arc<dyn Runnable>) -> bool {
        let Some(queued) = self.unqueue(class, job.flags().sequence()) else {
            return false;
        };
        let state = &mut self.classes[class.index()];
        state.running += 1;
        state.runs.slices += 1;
        let waited_ns = self.now_ns.saturating_sub(queued.submitted_ns);
        state.runs.wait.record(waited_ns);
        true
    }

    fn unqueue(&mut self, class: ClassId, sequence: u64) -> Option<QueuedJob> {
        let queued = self.classes[class.index()].queue.remove(sequence)?;
        self.admission.unqueued(class);
        self.withdraw_surplus(class);
        Some(queued)
    }

    /// Takes a token back for which no job waits, if the policy can. Else it stands for the next job of the class, or for none.
    fn withdraw_surplus(&mut self, class: ClassId) {
        if self.admission.has_surplus(class)
            && let Some(token) = self.decide.withdraw(class)
        {
            self.admission.began(class);
            self.release(token);
        }
    }

    /// Ends all that waits or sleeps. Returns how many.
    pub(crate) fn abandon(&mut self) -> usize {
        self.phase = PoolPhase::Over;
        let before = self.live;
        for index in 0..self.classes.len() {
            let class = ClassId(index as u16);
            while let Some(queued) = self.classes[index].queue.pop() {
                self.admission.unqueued(class);
                self.end_early(class, queued.job, EarlyEnd::Abandoned);
            }
        }
        for (_, (class, job)) in std::mem::take(&mut self.asleep) {
            self.classes[class.index()].asleep -= 1;
            self.end_early(class, job, EarlyEnd::Abandoned);
        }
        before - self.live
    }

    /// A class's counts, and its mean, ns.
    pub(crate) fn class_counts(&self, class: ClassId) -> (ClassCounts, f64) {
        let state = &self.classes[class.index()];
        let counts = ClassCounts {
            waiting: self.admission.waiting(class),
            running: state.running,
            asleep: state.asleep,
            ..state.counts
        };
        (counts, self.admission.mean_ns(class))
    }

    /// Whom to wake or start.
    #[inline]
    pub(crate) fn rouse(&mut self) -> Rouse {
        self.threads.rouse(&*self.decide)
    }

    /// The dispatcher's thread, if it is to be woken.
    #[inline]
    pub(crate) fn rouse_dispatcher(&mut self) -> Option<Thread> {
        self.threads.rouse_dispatcher(&*self.decide)
    }
}

/// The end of a run, as the pool counts it.
#[derive(Clone, Copy)]
pub(crate) struct JobEnd {
    pub(crate) class: ClassId,
    pub(crate) ran: RunEnd,
    /// Service in all, ns.
    pub(crate) cpu_ns: u64,
    pub(crate) chosen: Option<Chosen>,
}
