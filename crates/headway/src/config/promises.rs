//! What only the author of a handler can promise, so that a settings file may ask for it.
#![expect(
    unsafe_code,
    reason = "only the author of a handler can know what it keeps of its thread, and where it may be interrupted"
)]

use headway_policy::Resume;
use headway_runtime::{Builder, Mechanism};

/// What the author of a server's handlers promises of them.
///
/// A settings file may ask for `resume = "anywhere"` and `preempt = "signal"`, which not every handler bears. Who writes the file need not know the
/// handlers, so [`from_config`](super::FromConfig::from_config) refuses both;
/// [`from_config_promising`](super::FromConfig::from_config_promising) takes what is promised here.
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

    /// Interrupted requests may go on at any worker.
    ///
    /// # Safety
    /// The handlers keep what [`Builder::resume_anywhere`] asks of them.
    pub const unsafe fn resume_anywhere(mut self) -> Self {
        self.resume_anywhere = true;
        self
    }

    /// Requests may be interrupted by signals, between any two instructions.
    ///
    /// # Safety
    /// The handlers keep what [`Builder::interrupt_by_signal`] asks of them.
    pub const unsafe fn interrupt_by_signal(mut self) -> Self {
        self.interrupt_by_signal = true;
        self
    }

    /// Whether requests may go on like this.
    #[must_use]
    pub const fn allow_resume(self, resume: Resume) -> bool {
        self.resume_anywhere || matches!(resume, Resume::OwnWorker)
    }

    /// Whether requests may be interrupted by this.
    #[must_use]
    pub const fn allow_mechanism(self, mechanism: Mechanism) -> bool {
        self.interrupt_by_signal || !matches!(mechanism, Mechanism::Signal)
    }

    /// The builder with what is asked for, for the handlers of which this was promised.
    ///
    /// # Panics
    /// When it is not promised: ask [`allow_resume`](Self::allow_resume) and [`allow_mechanism`](Self::allow_mechanism) first.
    pub fn apply<S, D, C>(
        self,
        builder: Builder<S, D, C>,
        resume: Resume,
        mechanism: Mechanism,
    ) -> Builder<S, D, C> {
        assert!(
            self.allow_resume(resume) && self.allow_mechanism(mechanism),
            "nobody promised that handlers bear this"
        );
        let builder = match resume {
            // SAFETY: promised by who made `self`.
            Resume::Anywhere => unsafe { builder.resume_anywhere() },
            Resume::OwnWorker => builder,
        };
        match mechanism {
            // SAFETY: promised by who made `self`.
            Mechanism::Signal => unsafe { builder.interrupt_by_signal() },
            Mechanism::Tsc => builder.interrupt_by_clock(),
            _ => builder,
        }
    }
}
