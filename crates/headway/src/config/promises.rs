//! Promises of a handler's author, which permit further settings in a file.
#![expect(
    unsafe_code,
    reason = "only the author of a handler can know what it keeps of its thread, and where it may be interrupted"
)]

use headway_policy::Resume;
use headway_runtime::{Builder, Mechanism};

/// The promises that the author of a server's handlers makes about them.
///
/// A settings file may ask for `resume = "anywhere"` and `preempt = "signal"`, which not every handler tolerates. The file's author may not know
/// the handlers, so [`from_config`](super::FromConfig::from_config) refuses both.
/// [`from_config_promising`](super::FromConfig::from_config_promising) accepts the promised ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct HandlerPromises {
    resume_anywhere: bool,
    interrupt_by_signal: bool,
}

impl HandlerPromises {
    /// Nothing is promised.
    pub const fn none() -> Self {
        Self {
            resume_anywhere: false,
            interrupt_by_signal: false,
        }
    }

    /// Allows interrupted requests to resume at any worker.
    ///
    /// # Safety
    /// The handlers fulfil the contract of [`Builder::resume_anywhere`].
    pub const unsafe fn resume_anywhere(mut self) -> Self {
        self.resume_anywhere = true;
        self
    }

    /// Allows interruption by signals, between any two instructions.
    ///
    /// # Safety
    /// The handlers fulfil the contract of [`Builder::interrupt_by_signal`].
    pub const unsafe fn interrupt_by_signal(mut self) -> Self {
        self.interrupt_by_signal = true;
        self
    }

    /// Whether the promises allow this resume mode.
    #[must_use]
    pub const fn allow_resume(self, resume: Resume) -> bool {
        self.resume_anywhere || matches!(resume, Resume::OwnWorker)
    }

    /// Whether the promises allow this mechanism.
    #[must_use]
    pub const fn allow_mechanism(self, mechanism: Mechanism) -> bool {
        self.interrupt_by_signal || !matches!(mechanism, Mechanism::Signal)
    }

    /// The builder with the requested resume mode and, where one was chosen, mechanism, under these promises.
    ///
    /// # Panics
    /// When a promise is missing: call [`allow_resume`](Self::allow_resume) and [`allow_mechanism`](Self::allow_mechanism) first.
    pub fn apply<S, D>(
        self,
        builder: Builder<S, D>,
        resume: Resume,
        mechanism: Option<Mechanism>,
    ) -> Builder<S, D> {
        assert!(
            self.allow_resume(resume)
                && mechanism.is_none_or(|mechanism| self.allow_mechanism(mechanism)),
            "nobody promised that handlers bear this"
        );
        let builder = match resume {
            // SAFETY: promised by who made `self`.
            Resume::Anywhere => unsafe { builder.resume_anywhere() },
            Resume::OwnWorker => builder,
        };
        match mechanism {
            // SAFETY: promised by who made `self`.
            Some(Mechanism::Signal) => unsafe { builder.interrupt_by_signal() },
            Some(Mechanism::Tsc) => builder.interrupt_by_clock(),
            Some(_) => builder.interrupt_by_flag(),
            None => builder,
        }
    }
}
