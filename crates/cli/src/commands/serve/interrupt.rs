//! How a server interrupts requests: the flags, their meaning, and the checks for flags without effect.

use super::config::{File, Flags, Sourced};
use crate::args::ResumeFlag;
use crate::commands::apps::BuiltInApp;
use anyhow::Result;
use clap::ValueEnum;
use headway::config::look_every;
use headway_policy::Resume;
use headway_runtime::{Builder, Mechanism, ServerSetting, ServerSettings, StartError};
use headway_workload::Workload;
use std::time::Duration;

/// The mechanism by which a dispatcher interrupts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum PreemptFlag {
    /// A flag that the handlers' probes look at
    Flag,
    /// The worker's own clock, which the handlers' probes read
    Tsc,
    /// A POSIX signal, for handlers without probes
    Signal,
}

impl From<PreemptFlag> for Mechanism {
    fn from(flag: PreemptFlag) -> Self {
        match flag {
            PreemptFlag::Flag => Self::Flag,
            PreemptFlag::Tsc => Self::Tsc,
            PreemptFlag::Signal => Self::Signal,
        }
    }
}

#[derive(clap::Args, Clone)]
pub(super) struct InterruptFlags {
    /// Where an interrupted request resumes [default: anywhere; on its own worker with signals]
    #[arg(long, value_enum, value_name = "WHERE")]
    resume: Option<ResumeFlag>,
    /// Mechanism that interrupts requests where a dispatcher decides; tsc needs a policy with quanta, signals need a dispatcher with a thread of its own, and
    /// spin or echo [default: flag]
    #[arg(long, value_enum, value_name = "MECHANISM")]
    preempt: Option<PreemptFlag>,
    /// Interrupt only requests whose handlers declare themselves long: spin's long classes, and SCANs of kv
    #[arg(long)]
    feedback: bool,
    /// Interval at which workers look for arrivals during a request, where no dispatcher has a thread for it, at least 1us [default: 25us]
    #[arg(long, value_name = "TIME")]
    look_every: Option<String>,
}

/// The decided settings; `None` where neither flags nor file set a value.
pub(super) struct Interruption {
    resume: Option<Resume>,
    preempt: Option<Sourced<Mechanism>>,
    feedback: Sourced<bool>,
    most_lent_threads: Option<Sourced<usize>>,
    look_every: Option<Sourced<Duration>>,
}

impl Interruption {
    /// Merges flags over file over defaults.
    pub(super) fn of(flags: InterruptFlags, file: &File) -> Result<Self> {
        let set = &file.config;
        let preempt = flags.preempt.map(Mechanism::from);
        let look = flags.look_every;
        Ok(Self {
            resume: file
                .given_if_set("resume", flags.resume.map(Resume::from), &set.resume)
                .map(|given| given.value),
            preempt: file.given_if_set("preempt", preempt, &set.preempt),
            feedback: file.given(
                "feedback",
                flags.feedback.then_some(true),
                &set.feedback,
                || false,
            ),
            most_lent_threads: file.given_if_set("most-lent-threads", None, &set.most_lent_threads),
            look_every: file
                .given_if_set("look-every", look, &set.look_every)
                .map(|given| given.parse(|text| look_every(text)))
                .transpose()?,
        })
    }

    /// The mechanism by which a dispatcher interrupts.
    pub(super) fn mechanism(&self) -> Mechanism {
        self.preempt
            .as_ref()
            .map_or(Mechanism::Flag, |given| given.value)
    }

    /// These settings among all those of a server.
    pub(super) fn settings(&self) -> ServerSettings {
        ServerSettings {
            resume: self.resume,
            mechanism: self.preempt.as_ref().map(|given| given.value),
            feedback: self.feedback.value,
            // As all built-in services promise.
            plain_fibers: true,
            most_lent_threads: self.most_lent_threads.as_ref().map(|most| most.value),
            look_ns: self
                .look_every
                .as_ref()
                .map(|given| given.value.as_nanos() as u64),
            ..ServerSettings::default()
        }
    }

    /// An error about one of these settings.
    pub(super) fn refused(&self, setting: ServerSetting, error: StartError) -> anyhow::Error {
        match (setting, &self.preempt, &self.look_every) {
            (ServerSetting::Feedback, ..) => self.feedback.refused(error),
            (ServerSetting::LentThreads, ..) if let Some(given) = &self.most_lent_threads => {
                given.refused(error)
            }
            (ServerSetting::Mechanism, Some(given), _) => given.refused(error),
            (ServerSetting::LookEvery, _, Some(given)) => given.refused(error),
            _ => error.into(),
        }
    }

    /// Whether the server interrupts only requests that declare themselves long.
    pub(super) fn by_feedback(&self) -> bool {
        self.feedback.value
    }

    /// Refuses mechanisms that the service's handlers do not tolerate.
    pub(super) fn check_app(&self, app: BuiltInApp) -> Result<()> {
        let (promises, name) = (app.promises(), app.name());
        match &self.preempt {
            Some(given) if !promises.allow_mechanism(given.value) => Err(given.refused(format!(
                "a handler of {name} allocates or sleeps, where a signal must not interrupt it: leave it out, or choose flag"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses interruption by feedback where no handler gives feedback.
    pub(super) fn check_longs(&self, app: BuiltInApp, workload: &Workload) -> Result<()> {
        if !self.feedback.value || !app.longs(workload).is_empty() {
            return Ok(());
        }
        let remedy = match app {
            BuiltInApp::Spin => {
                "give --workload a class with long = true, or one with ten times the shortest's mean"
            }
            BuiltInApp::Kv | BuiltInApp::Sleep | BuiltInApp::Echo => "choose --app spin or kv",
        };
        Err(self.feedback.refused(format!(
            "no request of {} says that it is long, so that none would be interrupted: leave it out, or {remedy}",
            app.name()
        )))
    }

    /// The builder with all of it, for the service.
    pub(super) fn apply<S, D>(&self, app: BuiltInApp, builder: Builder<S, D>) -> Builder<S, D> {
        let builder = builder.by_feedback(self.feedback.value);
        let builder = match &self.look_every {
            Some(interval) => builder.look_every(interval.value),
            None => builder,
        };
        app.promises()
            .apply(builder, self.resume, self.settings().mechanism)
    }
}
