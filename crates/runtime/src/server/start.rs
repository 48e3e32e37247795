//! From what a builder was told to a running server.

use std::sync::Arc;

use headway_machine::Clock;
#[cfg(feature = "ops")]
use headway_ops::subject::AskedSubject;
use headway_policy::server::systems::{self, ServerSpec, Visit};

use super::builder::{Builder, BuilderParts};
#[cfg(feature = "ops")]
use super::doors::status::ServerSubject;
use super::launch::{Launch, StartedEngine};
use super::source::{OpenDatapath, Source};
use super::{Observer, Server, Stopper, Tuner};
use crate::engine::class::UNKNOWN_NAME;
use crate::engine::parts::{EngineParts, ServerConfig};
use crate::engine::settings::{AdmittedServer, ServerSettings};
use crate::error::StartError;
use crate::request::service::Service;

impl<S, D> Builder<S, D> {
    /// The settings of the engine.
    fn config(&self, admitted: &AdmittedServer, clock: Clock) -> ServerConfig {
        let settings = &self.settings;
        let names = settings.classes.iter().map(|class| class.name.clone());
        ServerConfig {
            clock,
            class_names: names.chain([UNKNOWN_NAME.to_owned()]).collect(),
            idle: self.idle,
            layout: admitted.layout,
            pin: settings.pin.clone(),
            stalls: settings.stalls,
            journal: settings.journal,
            slots: admitted.shape.job_capacity,
            stack_bytes: settings.stack_bytes,
            plain_fibers: settings.plain_fibers,
            most_lent_threads: settings.most_lent_threads.unwrap_or(usize::MAX),
            mechanism: settings.mechanism(),
            look_ns: settings.look_ns,
            feedback: settings.feedback,
            behind_switch: settings.behind_switch,
            cores: self.cores.clone(),
        }
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

    /// What [`start`](Self::start) decides before it starts anything: how the server would run, or which setting it refuses. It asks the machine for
    /// what it has, and binds no address.
    ///
    /// ```
    /// use headway_runtime::Server;
    /// use std::time::Duration;
    ///
    /// let limited = Server::builder()
    ///     .policy("synergy")
    ///     .queue_limit(64)
    ///     .class("get", Duration::from_micros(2))
    ///     .handler(|call| call.reply(b"pong"))
    ///     .listen_udp("127.0.0.1:7000".parse().unwrap());
    /// let refused = limited.check().unwrap_err();
    /// assert!(refused.to_string().contains("leave the queue limit out"));
    /// ```
    ///
    /// # Errors
    /// [`StartError`], which says what to do.
    pub fn check(&self) -> Result<AdmittedServer, StartError>
    where
        S: Service,
        D: Source,
    {
        let has_own_stacks = self.service.has_own_stacks();
        let steers = self.datapath.steering().is_some();
        Ok(self.admit(has_own_stacks, steers)?.1)
    }

    /// The policy, and the server that may start under it.
    fn admit(
        &self,
        has_own_stacks: bool,
        steers: bool,
    ) -> Result<(ServerSpec, AdmittedServer), StartError> {
        if let Some(class) = &self.timeless {
            let class = class.clone();
            return Err(StartError::NoTime { class });
        }
        let settings = ServerSettings {
            steers,
            has_own_stacks,
            granted_cores: self.cores.as_ref().map(|cores| cores.0.kthreads()),
            ..self.settings.clone()
        };
        let spec = self.policy.clone()?;
        let admitted = settings.admit(&spec)?;
        Ok((spec, admitted))
    }
}

impl Builder<Arc<dyn Service>, Box<dyn Source>> {
    /// Starts the server, whose engine knows neither the type of the service nor that of the datapath.
    fn launch(self) -> Result<Server, StartError> {
        let steers = self.datapath.steering().is_some();
        let (spec, admitted) = self.admit(self.service.has_own_stacks(), steers)?;
        let clock = self.clock.unwrap_or_else(Clock::global);
        let config = self.config(&admitted, clock);
        let shape = admitted.shape;
        let class_names = config.class_names.clone();
        let OpenDatapath { datapath, addr } = self.datapath.open()?;
        #[cfg(feature = "ops")]
        let doors = self.doors.bind(addr)?;
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
        let rack_link = engine.rack_link(shape.queues());
        let observer = Observer::of(&engine, &shape, class_names);
        let tuner = Tuner::of(&engine, shape, spec, policy.params.clone());
        #[cfg(feature = "ops")]
        let subject = ServerSubject::new(&engine, policy.name, addr, &observer, &tuner);
        let server = Server {
            #[cfg(feature = "ops")]
            doors: self.doors.closed(AskedSubject::of(subject)),
            stopper: Stopper::of(&engine),
            rack_link,
            observer,
            tuner,
            engine,
            addr,
            policy,
            workers: self.settings.workers,
            idle: self.idle,
            drain: self.drain,
            clock,
        };
        // Whole before its doors open: where they do not, it is dropped, which ends its threads.
        #[cfg(feature = "ops")]
        let server = server.opened(doors)?;
        Ok(server)
    }
}
