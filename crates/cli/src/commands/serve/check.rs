//! Checks of a server's settings before it starts; `--check` does nothing else.

use super::args::Args;
use super::settings::ServeSettings;
use crate::commands::admission::{self, Refused};
use crate::commands::apps::{BuiltInApp, KvFlags};
use crate::error::usage;
use anyhow::Result;
use headway::config::Config;
use headway_policy::Shape;
use headway_runtime::{
    Admission, LayoutFacts, Pin, ResolvedLayout, StartError, mean_service_ns, server_shape,
};
use headway_workload::duration;

/// Refuses settings that the chosen service ignores: a setting without effect is a mistake.
pub(super) fn refuse_unheeded(args: &Args, file: &Config<BuiltInApp, KvFlags>) -> Result<()> {
    let app = args.app.or(file.app).unwrap_or_default();
    let (flags, keys) = (&args.kv, file.kv.clone().unwrap_or_default());
    let settings = [
        (
            "--workload",
            BuiltInApp::Spin,
            args.workload.is_some() || file.workload.is_some(),
        ),
        (
            "--max-spin",
            BuiltInApp::Spin,
            args.max_spin.is_some() || file.max_spin.is_some(),
        ),
        ("--keys", BuiltInApp::Kv, flags.keys.or(keys.keys).is_some()),
        (
            "--data",
            BuiltInApp::Kv,
            flags.data.is_some() || keys.data.is_some(),
        ),
    ];
    for (flag, heeds, is_given) in settings {
        let is_timed = heeds == BuiltInApp::Spin && app == BuiltInApp::Sleep;
        if is_given && app != heeds && !is_timed {
            let (heeds, app) = (heeds.name(), app.name());
            let why = format!(
                "the service {app} does not heed it: leave it out, or choose --app {heeds}"
            );
            return Err(usage(flag, why));
        }
    }
    Ok(())
}

impl ServeSettings {
    /// How the server will execute its policy, or an error about the setting to change.
    pub(super) fn admit(&self) -> Result<Admission> {
        self.app.check_built()?;
        self.check_spins()?;
        self.interruption.check_app(self.app)?;
        let mut shape = self.shape()?;
        shape.seed = self.seed;
        shape.resume = self.interruption.resume.value;
        let admitted = admission::admit(&self.policy.value, &shape, self.layout.value);
        let admission = admitted.map_err(|refused| match refused {
            Refused::Policy(why) => self.policy.refused(why),
            Refused::Layout(why) => self.layout.refused(why),
        })?;
        if self.limits_queues && !admission.limits_queues {
            let why = format!(
                "under '{}' requests wait in the kernel's receive queues, which it does not limit: leave it out, or choose a policy with a \
                 dispatcher, such as c-fcfs",
                self.policy.value
            );
            return Err(usage("--queue-limit", why));
        }
        if let Some(rack) = &self.rack {
            rack.check(&self.classifier)?;
            if !admission.has_dispatcher {
                let policy = self.policy.value.name();
                return Err(self.policy.refused(StartError::NoDispatcher { policy }));
            }
        }
        self.check_steering(admission)?;
        let layout = self.resolve_layout(&admission)?;
        self.interruption
            .check(&self.policy.value, admission, layout.is_dedicated())?;
        self.interruption.check_longs(self.app, &self.workload)?;
        self.check_pin(layout.threads_beside)?;
        Ok(admission)
    }

    /// The server of these settings, with each number within the limits of a server.
    fn shape(&self) -> Result<Shape> {
        let (workers, limit) = (self.workers.value, self.queue_limit.value as usize);
        let classes = self.app.classes(&self.workload);
        server_shape(workers, &classes, limit).map_err(|error| match error {
            StartError::Workers { .. } => self.workers.refused(error),
            StartError::QueueLimit { .. } | StartError::OutOfRange { .. } => {
                self.queue_limit.refused(error)
            }
            _ => usage("--workload", error),
        })
    }

    /// The server's layout, which [`Builder::start`](headway_runtime::Builder::start) decides alike.
    fn resolve_layout(&self, admission: &Admission) -> Result<ResolvedLayout> {
        let facts = LayoutFacts {
            admission,
            workers: self.workers.value,
            mechanism: self.interruption.mechanism(),
            hosted: self.host.is_some(),
            cores: LayoutFacts::usable_cores(),
            costs: self.layout_costs,
            service_ns: mean_service_ns(&self.shape()?.classes),
        };
        let resolved = self.layout.value.resolve(&facts);
        resolved.map_err(|error| match error {
            StartError::ClockTooLate => self.interruption.refused(error),
            other => self.layout.refused(other),
        })
    }

    /// Checks that workers have receive queues of their own where requests are steered to them.
    fn check_steering(&self, admission: Admission) -> Result<()> {
        match &self.steer {
            Some(steer) if admission.has_one_receive_queue() => {
                let policy = self.policy.value.name();
                Err(steer.refused(StartError::OneQueue { policy }))
            }
            _ => Ok(()),
        }
    }

    /// Checks that named cores suffice for the workers and the threads beside them.
    fn check_pin(&self, threads_beside: usize) -> Result<()> {
        let Pin::Cores(cores) = &self.pin.value else {
            return Ok(());
        };
        let (threads, cores) = (self.workers.value + threads_beside, cores.len());
        if cores < threads {
            return Err(self.pin.refused(StartError::TooFewCores { threads, cores }));
        }
        Ok(())
    }

    /// Checks that the service allows the service times of its own classes.
    fn check_spins(&self) -> Result<()> {
        let max_ns = self.max_spin_ns.value;
        let mut classes = self.workload.union();
        let longer = classes.find(|class| class.mean_ns() > max_ns as f64);
        let is_timed = matches!(self.app, BuiltInApp::Spin | BuiltInApp::Sleep);
        match longer.filter(|_| is_timed) {
            Some(class) => Err(self.max_spin_ns.refused(format!(
                "requests of class '{}' ask for {} on average, and more than {} is refused: allow more",
                class.name,
                duration::format(class.mean_ns() as u64),
                duration::format(max_ns)
            ))),
            None => Ok(()),
        }
    }
}
