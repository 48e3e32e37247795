//! The settings of a server, and which of them a policy heeds: one table, decided without starting anything.
//!
//! The builder, the settings file, the C interface and `headway serve --check` all ask [`ServerSettings::admit`], so that they refuse alike.

use std::time::Duration;

use headway_fiber::{MAX_STACK_BYTES, Mechanism};
use headway_net::pool::MAX_SLOTS;
use headway_policy::server::systems::{Facts, ServerSpec};
use headway_policy::spec::SpecError;
use headway_policy::{Resume, Shape};

use super::admission::{Admission, admit, queue_limit_within, slots_needed, unbuffered, within};
use super::class::DeclaredClass;
use super::layout::{Layout, LayoutFacts, ResolvedLayout};
use super::layout_costs::{LayoutCosts, mean_service_ns};
use crate::error::StartError;
use crate::threads::server_threads::{Pin, Pinning};

/// Of a fiber's stack, unless chosen otherwise.
const STACK_BYTES: usize = 256 << 10;
/// The most stalls a server keeps: 256 MiB of them.
const MAX_STALLS: usize = 1 << 24;
/// The most entries of a worker's journal: 96 MiB of them.
const MAX_JOURNAL: usize = 1 << 22;
/// A look can take most of a microsecond.
const LEAST_LOOK: Duration = Duration::from_micros(1);
/// A worker that does not look for a second holds all that arrives for a second.
const MOST_LOOK: Duration = Duration::from_secs(1);

/// The settings of a server beside its policy, its service and where its requests come from. `None` stands for what was not chosen.
#[derive(Clone, Debug)]
pub struct ServerSettings {
    /// Workers, 1 to [`MAX_WORKERS`](headway_policy::MAX_WORKERS).
    pub workers: usize,
    /// The declared classes, at most [`MAX_CLASSES`](headway_policy::MAX_CLASSES).
    pub classes: Vec<DeclaredClass>,
    /// Most requests that wait in one queue of the server, at least 1.
    pub queue_limit: Option<usize>,
    /// Buffers, one per worker to [`MAX_SLOTS`].
    pub slots: Option<usize>,
    /// Seed of the policy's own randomness.
    pub seed: u64,
    /// Where interrupted requests go on, if chosen; see [`ServerSettings::resume`].
    pub resume: Option<Resume>,
    /// Whether handlers keep nothing in their threads, so that requests need no thread's state of their own.
    pub plain_fibers: bool,
    /// The most threads that lend requests their state, if chosen; 0 for none.
    pub most_lent_threads: Option<usize>,
    /// Who carries the dispatcher or the monitor out.
    pub layout: Layout,
    /// What the layouts cost on this machine, by which [`Layout::Auto`] chooses.
    pub layout_costs: LayoutCosts,
    /// Whether threads are bound to cores.
    pub pin: Pin,
    /// Whether the service keeps stacks of its own: loops that take their requests themselves.
    pub has_own_stacks: bool,
    /// By what a dispatcher interrupts.
    pub mechanism: Option<Mechanism>,
    /// Whether only requests are interrupted that say that they are long.
    pub feedback: bool,
    /// How often a busy worker looks for arrivals, 1 µs to 1 s, ns.
    pub look_ns: Option<u64>,
    /// Whether it was chosen how requests are steered to receive queues.
    pub steers: bool,
    /// Whether the server stands behind a rack's switch.
    pub behind_switch: bool,
    /// The most cores that an arbiter grants, where one does; `usize::MAX` before it is asked.
    pub granted_cores: Option<usize>,
    /// Stalls kept, at most 16 777 216.
    pub stalls: usize,
    /// Entries of each worker's journal, at most 4 194 304.
    pub journal: usize,
    /// Bytes of a request's stack, at most [`MAX_STACK_BYTES`].
    pub stack_bytes: usize,
}

/// A server that may start.
#[derive(Clone, Debug)]
pub struct AdmittedServer {
    /// How the policy is carried out.
    pub admission: Admission,
    /// Who carries it out.
    pub layout: ResolvedLayout,
    /// What the policy is built for.
    pub shape: Shape,
}

impl Default for ServerSettings {
    fn default() -> Self {
        Self {
            workers: 1,
            classes: Vec::new(),
            queue_limit: None,
            slots: None,
            seed: 0,
            resume: None,
            plain_fibers: false,
            most_lent_threads: None,
            has_own_stacks: false,
            layout: Layout::default(),
            layout_costs: LayoutCosts::default(),
            pin: Pin::default(),
            mechanism: None,
            feedback: false,
            look_ns: None,
            steers: false,
            behind_switch: false,
            granted_cores: None,
            stalls: 0,
            journal: 0,
            stack_bytes: STACK_BYTES,
        }
    }
}

impl ServerSettings {
    /// Where interrupted requests go on, chosen or not: anywhere, as in the papers. But signals, and handlers whose code is suspended between any two
    /// instructions then, keep to their worker, and so do loops: they run on stacks of the service's own, without a thread's state.
    #[must_use]
    pub fn resume(&self) -> Resume {
        let stays = self.mechanism() == Mechanism::Signal || self.loops_stay();
        self.resume.unwrap_or(if stays {
            Resume::OwnWorker
        } else {
            Resume::Anywhere
        })
    }

    /// Whether loops take the requests that keep something in their threads.
    fn loops_stay(&self) -> bool {
        self.has_own_stacks && !self.plain_fibers
    }

    /// By what a dispatcher interrupts, chosen or not.
    #[must_use]
    pub fn mechanism(&self) -> Mechanism {
        self.mechanism.unwrap_or(Mechanism::Flag)
    }

    /// Whether a server of these settings runs the policy, and how. A setting that nothing heeds is refused: it is a mistake.
    ///
    /// # Errors
    /// [`StartError`], which says which setting is wrong and what to choose instead.
    pub fn admit(&self, spec: &ServerSpec) -> Result<AdmittedServer, StartError> {
        self.check_loops()?;
        self.check_numbers()?;
        self.mechanism().check()?;
        let mut shape = unbuffered(self.workers, &self.classes, self.queue_limit)?;
        shape.seed = self.seed;
        shape.resume = self.resume();
        let admission =
            admit(spec, &shape).map_err(|error| self.without_interrupter(spec, error))?;
        shape.job_capacity = self.slots(&shape, &admission)?;
        if let Some(slots) = self.slots {
            let limit = queue_limit_within(slots, &shape, &admission);
            shape.queue_limit = shape.queue_limit.min(limit);
        }
        self.check_heeded(spec.name(), &admission)?;
        if let Some(cores) = self.granted_cores {
            self.check_granted(cores, spec, &admission)?;
        }
        let layout = self.layout.resolve(&LayoutFacts {
            admission: &admission,
            workers: self.workers,
            mechanism: self.mechanism(),
            hosted: self.granted_cores.is_some(),
            cores: LayoutFacts::usable_cores(),
            costs: self.layout_costs,
            service_ns: mean_service_ns(&shape.classes),
        })?;
        if self.look_ns.is_some() && !admission.polls_at_work(layout.is_dedicated()) {
            return Err(StartError::NoLooks);
        }
        if self.granted_cores.is_none() {
            Pinning::check(&self.pin, self.workers + layout.threads_beside)?;
        }
        Ok(AdmittedServer {
            admission,
            layout,
            shape,
        })
    }

    /// Signals keep requests to their worker. Where no dispatcher sends any, that is not the mistake, but that they were chosen.
    fn without_interrupter(&self, spec: &ServerSpec, error: StartError) -> StartError {
        let is_moved = matches!(error, StartError::Policy(SpecError::Roams { .. }));
        let by_dispatcher = spec.facts().preemption == Facts::BY_DISPATCHER;
        if is_moved && self.resume.is_none() && self.mechanism.is_some() && !by_dispatcher {
            let policy = spec.name();
            return StartError::NoInterrupter { policy };
        }
        error
    }

    /// What loops cannot do that take their requests themselves.
    fn check_loops(&self) -> Result<(), StartError> {
        if self.has_own_stacks && self.most_lent_threads.is_some() {
            let why = "loops that take their requests themselves stay in their workers' threads";
            return Err(StartError::NothingLent { why });
        }
        if self.loops_stay() && self.resume == Some(Resume::Anywhere) {
            return Err(StartError::LoopsStay);
        }
        Ok(())
    }

    /// Numbers that would hang a thread, or ask for more memory than there is.
    fn check_numbers(&self) -> Result<(), StartError> {
        within("keep_stalls", self.stalls, 0, MAX_STALLS)?;
        within("journal", self.journal, 0, MAX_JOURNAL)?;
        within("stack_bytes", self.stack_bytes, 0, MAX_STACK_BYTES)?;
        let interval = self.look_ns.map(Duration::from_nanos);
        interval.map_or(Ok(()), Self::check_look_interval)
    }

    /// Refuses an interval between looks for arrivals that is not from 1 µs to 1 s.
    ///
    /// # Errors
    /// [`StartError::LookInterval`].
    pub fn check_look_interval(interval: Duration) -> Result<(), StartError> {
        if (LEAST_LOOK..=MOST_LOOK).contains(&interval) {
            return Ok(());
        }
        Err(StartError::LookInterval { interval })
    }

    /// As many buffers as chosen, or as the queues need: each dispatcher has queues of its own.
    fn slots(&self, shape: &Shape, admission: &Admission) -> Result<usize, StartError> {
        match self.slots {
            Some(slots) => {
                within("slots", slots, self.workers, MAX_SLOTS)?;
                Ok(slots)
            }
            None => {
                let slots = slots_needed(shape)? * admission.dispatchers.max(1);
                Ok(slots.min(MAX_SLOTS))
            }
        }
    }

    /// What the policy has no use for.
    fn check_heeded(&self, policy: &'static str, admission: &Admission) -> Result<(), StartError> {
        let refused = if self.layout != Layout::Auto && !admission.is_laid_out() {
            StartError::NothingLaidOut { policy }
        } else if self.queue_limit.is_some() && !admission.limits_queues {
            StartError::UnlimitedQueues { policy }
        } else if self.behind_switch && !admission.has_dispatcher {
            StartError::NoDispatcher { policy }
        } else if self.steers && admission.has_one_receive_queue() {
            StartError::OneQueue { policy }
        } else if self.mechanism.is_some() && !admission.dispatcher_interrupts {
            StartError::NoInterrupter { policy }
        } else if self.feedback && !admission.interrupts() {
            StartError::NoInterruptions { policy }
        } else if let Some(why) = self.why_nothing_is_lent(admission) {
            StartError::NothingLent { why }
        } else {
            return Ok(());
        };
        Err(refused)
    }

    /// Why the most threads that lend requests their state bound nothing, where they were chosen.
    fn why_nothing_is_lent(&self, admission: &Admission) -> Option<&'static str> {
        self.most_lent_threads?;
        if self.plain_fibers {
            Some("the handlers keep nothing in their threads")
        } else if !admission.interrupts() {
            Some("the policy interrupts no request")
        } else {
            None
        }
    }

    /// What a server cannot do whose cores come and go.
    fn check_granted(
        &self,
        cores: usize,
        spec: &ServerSpec,
        admission: &Admission,
    ) -> Result<(), StartError> {
        let workers = self.workers;
        let why = if workers > cores {
            format!(
                "a server has at most as many workers as it may have cores, {cores} and not {workers}: use fewer workers, or raise the most in the \
                 daemon's settings"
            )
        } else if self.layout == Layout::Dedicated {
            "no dispatcher or monitor can have a core of its own: choose the inline layout, where the workers take turns".to_owned()
        } else if spec.gives("dispatcher") {
            "the workers take turns as the dispatcher: leave the policy's parameter `dispatcher` out".to_owned()
        } else if self.mechanism == Some(Mechanism::Signal) {
            "workers interrupt their requests themselves: choose flags or the clock instead of signals".to_owned()
        } else if admission.dispatchers > 1 {
            "a server has one dispatcher, which its workers carry out by turns: choose a policy with one".to_owned()
        } else if self.behind_switch {
            "a server belongs to no rack, which would count on its workers: leave one of the two out"
                .to_owned()
        } else if matches!(self.pin, Pin::Cores(_)) {
            "the arbiter places the workers: leave the cores out".to_owned()
        } else {
            return Ok(());
        };
        Err(StartError::Hosted(why))
    }
}
