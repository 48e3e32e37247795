//! Promises of a handler's author, which permit further settings in a file.
#![expect(
    unsafe_code,
    reason = "only the author of a handler can know what it keeps of its thread, and where it may be interrupted"
)]

use headway_policy::Resume;
use headway_runtime::{Builder, Mechanism};

/// The promises that the author of a server's handlers makes about them.
///
/// A settings file may ask for `preempt = "signal"`, which not every handler tolerates. The file's author may not know
/// the handlers, so [`from_config`](super::FromConfig::from_config) refuses it.
/// [`from_config_promising`](super::FromConfig::from_config_promising) accepts what was promised.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[must_use]
pub struct HandlerPromises {
    keeps_nothing_in_threads: bool,
    interrupt_by_signal: bool,
}

impl HandlerPromises {
    /// Nothing is promised.
    pub const fn none() -> Self {
        Self {
            keeps_nothing_in_threads: false,
            interrupt_by_signal: false,
        }
    }

    /// Lets requests run on plain fibers, which are switched faster.
    ///
    /// # Safety
    /// The handlers fulfil the contract of [`Builder::plain_fibers`].
    pub const unsafe fn keeping_nothing_in_threads(mut self) -> Self {
        self.keeps_nothing_in_threads = true;
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

    /// Whether the promises allow this mechanism.
    #[must_use]
    pub const fn allow_mechanism(self, mechanism: Mechanism) -> bool {
        self.interrupt_by_signal || !matches!(mechanism, Mechanism::Signal)
    }

    /// The builder with the requested resume mode and mechanism, where they were chosen, under these promises.
    ///
    /// # Panics
    /// When a promise is missing: call [`allow_mechanism`](Self::allow_mechanism) first.
    pub fn apply<S, D>(
        self,
        mut builder: Builder<S, D>,
        resume: Option<Resume>,
        mechanism: Option<Mechanism>,
    ) -> Builder<S, D> {
        assert!(
            mechanism.is_none_or(|mechanism| self.allow_mechanism(mechanism)),
            "nobody promised that handlers bear this"
        );
        if let Some(resume) = resume {
            builder = builder.resume(resume);
        }
        if self.keeps_nothing_in_threads {
            // SAFETY: promised by who made `self`.
            builder = unsafe { builder.plain_fibers() };
        }
        match mechanism {
            // SAFETY: promised by who made `self`.
            Some(Mechanism::Signal) => unsafe { builder.interrupt_by_signal() },
            Some(Mechanism::Tsc) => builder.interrupt_by_clock(),
            Some(_) => builder.interrupt_by_flag(),
            None => builder,
        }
    }
}
