//! Checks of a server's settings before it starts; `--check` does nothing else.

use super::args::Args;
use super::datapath::is_of_device;
use super::settings::ServeSettings;
use crate::commands::apps::{BuiltInApp, KvFlags};
use crate::commands::control_socket;
use crate::error::{explain, usage};
use anyhow::Result;
use headway::config::Config;
use headway_runtime::{Admission, DoorError, ServerSetting, ServerSettings, StartError};
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
        let policy = &self.policy.value;
        let admitted = self.checked().admit(policy);
        let admitted = admitted.map_err(|error| self.refused(error))?;
        if let Some(rack) = &self.rack {
            rack.check(&self.classifier)?;
        }
        self.interruption.check_longs(self.app, &self.workload)?;
        Ok(admitted.admission)
    }

    /// What the server checks at its start.
    fn checked(&self) -> ServerSettings {
        ServerSettings {
            workers: self.workers.value,
            classes: self.app.classes(&self.workload),
            queue_limit: self.chosen_limit(),
            seed: self.seed,
            layout: self.layout.value,
            layout_costs: self.layout_costs,
            journal: self.journal,
            pin: self.pin.value.clone(),
            steers: self.steer.is_some(),
            behind_switch: self.rack.is_some(),
            granted_cores: self.host.as_ref().map(|_| usize::MAX),
            ..self.interruption.settings()
        }
    }

    /// The error at the place of the setting that it is about.
    pub(super) fn refused(&self, error: StartError) -> anyhow::Error {
        match (error.setting(), error) {
            (_, StartError::Policy(error)) => self.policy.refused(explain(&error)),
            (_, StartError::Datapath { source, .. }) if is_of_device(&source) => {
                self.listen.refused(source)
            }
            (_, StartError::Doors(DoorError::Control(why))) => {
                control_socket::refused(&self.ctl, &why)
            }
            (ServerSetting::Metrics, error) => match &self.metrics {
                Some(metrics) => metrics.refused(error),
                None => error.into(),
            },
            (ServerSetting::Policy, error) => self.policy.refused(error),
            (ServerSetting::Workers, error) => self.workers.refused(error),
            (ServerSetting::Classes, error) => usage("--workload", error),
            (ServerSetting::QueueLimit, error) => self.queue_limit.refused(error),
            (ServerSetting::Layout, error) => self.layout.refused(error),
            (ServerSetting::Pin, error) => self.pin.refused(error),
            (ServerSetting::Host, error) => usage("--host", error),
            (ServerSetting::Steering, error) => match &self.steer {
                Some(steer) => steer.refused(error),
                None => error.into(),
            },
            (setting, error) => self.interruption.refused(setting, error),
        }
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
