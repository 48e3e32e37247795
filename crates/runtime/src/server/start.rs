//! From what a builder was told to a running server.

use std::sync::Arc;

use headway_fiber::{MAX_STACK_BYTES, Mechanism};
use headway_machine::Clock;
use headway_net::pool::MAX_SLOTS;
use headway_policy::Shape;
use headway_policy::server::systems::{self, ServerSpec, Visit};

use super::builder::{Builder, BuilderParts};
use super::launch::{Launch, StartedEngine};
use super::source::{OpenDatapath, Source};
use super::{Observer, Server, Stopper, Tuner};
use crate::engine::admission::{Admission, admit, slots_needed, unbuffered, within};
use crate::engine::layout::{Layout, LayoutFacts, ResolvedLayout};
use crate::engine::layout_costs::mean_service_ns;
use crate::engine::parts::{EngineParts, ServerConfig};
use crate::error::StartError;
use crate::request::service::Service;
use crate::threads::hosted::ServerCores;
use crate::threads::server_threads::Pin;

/// The most stalls a server keeps: 256 MiB of them.
const MAX_STALLS: usize = 1 << 24;

impl<S, D> Builder<S, D> {
    fn shape(&self) -> Result<Shape, StartError> {
        self.check_numbers()?;
        let mut shape = unbuffered(self.workers, &self.classes, self.queue_limit)?;
        shape.seed = self.seed;
        shape.resume = self.resume;
        shape.job_capacity = match self.slots {
            Some(slots) => {
                within("slots", slots, self.workers, MAX_SLOTS)?;
                slots
            }
            None => slots_needed(&shape)?,
        };
        Ok(shape)
    }

    /// The settings of the engine, which has so many `slots`.
    fn config(&self, slots: usize, layout: ResolvedLayout, clock: Clock) -> ServerConfig {
        let names = self.classes.iter().map(|class| class.name.clone());
        ServerConfig {
            clock,
            class_names: names.chain(["unknown".to_owned()]).collect(),
            idle: self.idle,
            layout,
            pin: self.pin.clone(),
            stalls: self.stalls,
            journal: self.journal,
            slots,
            stack_bytes: self.stack_bytes,
            mechanism: self.mechanism,
            look_ns: self.look_ns,
            feedback: self.feedback,
            behind_switch: self.behind_switch,
            cores: self.cores.clone(),
        }
    }

    /// What a server cannot do whose cores come and go.
    fn check_hosted(&self, cores: &ServerCores, admission: &Admission) -> Result<(), StartError> {
        let (kthreads, workers) = (cores.0.kthreads(), self.workers);
        let why = if workers > kthreads {
            format!(
                "a server has at most as many workers as it may have cores, {kthreads} and not {workers}: use fewer workers, or raise the most in the \
                 daemon's settings"
            )
        } else if self.layout == Layout::Dedicated {
            "no dispatcher or monitor can have a core of its own: choose the inline layout, where the workers take turns".to_owned()
        } else if self.mechanism == Mechanism::Signal {
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

    /// Numbers that would hang a thread, or ask for more memory than there is.
    fn check_numbers(&self) -> Result<(), StartError> {
        if let Some(class) = &self.timeless {
            let class = class.clone();
            return Err(StartError::NoTime { class });
        }
        within("keep_stalls", self.stalls, 0, MAX_STALLS)?;
        within("stack_bytes", self.stack_bytes, 0, MAX_STACK_BYTES)
    }
}

impl<S, D> Builder<S, D> {
    /// Starts the server.
    ///
    /// # Errors
    /// [`StartError`], which says what to do.
    pub fn start(self) -> Result<Server, StartError>
    where
        S: Service,
        D: Source + 'static,
    {
        self.with(|parts| BuilderParts {
            service: Arc::new(parts.service) as Arc<dyn Service>,
            datapath: Box::new(parts.datapath) as Box<dyn Source>,
        })
        .launch()
    }
}

impl Builder<Arc<dyn Service>, Box<dyn Source>> {
    /// What the policy has no use for.
    fn check_policy(&self, spec: &ServerSpec, admission: &Admission) -> Result<(), StartError> {
        let policy = spec.name();
        if admission.has_one_receive_queue() && self.datapath.steering().is_some() {
            return Err(StartError::OneQueue { policy });
        }
        if self.behind_switch && !admission.has_dispatcher {
            return Err(StartError::NoDispatcher { policy });
        }
        Ok(())
    }

    /// Starts the server, whose engine knows neither the type of the service nor that of the datapath.
    fn launch(self) -> Result<Server, StartError> {
        self.mechanism.check()?;
        let mut shape = self.shape()?;
        let spec = self.policy.clone()?;
        let admission = admit(&spec, &shape)?;
        self.check_policy(&spec, &admission)?;
        if self.slots.is_none() {
            // Each dispatcher has queues of its own.
            let slots = shape.job_capacity * admission.dispatchers.max(1);
            shape.job_capacity = slots.min(MAX_SLOTS);
        }
        if let Some(cores) = &self.cores {
            self.check_hosted(cores, &admission)?;
        }
        let layout = self.layout.resolve(&LayoutFacts {
            admission: &admission,
            workers: self.workers,
            mechanism: self.mechanism,
            hosted: self.cores.is_some(),
            cores: LayoutFacts::usable_cores(),
            costs: self.layout_costs,
            service_ns: mean_service_ns(&shape.classes),
        })?;
        let clock = self.clock.unwrap_or_else(Clock::global);
        let config = self.config(shape.job_capacity, layout, clock);
        let class_names = config.class_names.clone();
        let OpenDatapath { datapath, addr } = self.datapath.open()?;
        let parts = EngineParts {
            datapath,
            classifier: self.classifier,
            service: self.service,
            shape: shape.clone(),
            config,
        };
        let launch = Launch(parts);
        let StartedEngine { engine, policy } = if self.directed {
            launch.visit(systems::given(&shape))?
        } else {
            systems::with(&spec, &shape, launch)??
        };
        Ok(Server {
            stopper: Stopper::of(&engine),
            rack_link: engine.rack_link(shape.queues()),
            observer: Observer::of(&engine, &shape, class_names),
            tuner: Tuner::of(&engine, shape, spec, policy.params.clone()),
            engine,
            addr,
            policy,
            workers: self.workers,
            idle: self.idle,
            drain: self.drain,
            clock,
        })
    }
}
