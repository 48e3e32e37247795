//! A spec whose policy is known.

use super::describe::{Facts, ServerPolicy};
use crate::spec::{Spec, SpecError};
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

/// A spec of a server's policy, which has all its parameters. Their values are [checked](Self::check) against a shape.
#[derive(Clone)]
pub struct ServerSpec {
    policy: &'static ServerPolicy,
    spec: Spec,
}

impl ServerSpec {
    /// A spec whose parameters the policy has.
    ///
    /// # Errors
    /// [`SpecError::UnknownParam`] when the policy has none of a parameter's key.
    pub(super) fn of(policy: &'static ServerPolicy, spec: Spec) -> Result<Self, SpecError> {
        policy.about.check_keys(&spec)?;
        Ok(Self { policy, spec })
    }

    /// The spec, as written.
    #[must_use]
    pub fn spec(&self) -> &Spec {
        &self.spec
    }

    /// The policy's own name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.policy.about.name
    }

    /// What the policy says of itself.
    #[must_use]
    pub fn policy(&self) -> &'static ServerPolicy {
        self.policy
    }

    /// What the policy is with these parameters.
    #[must_use]
    pub fn facts(&self) -> Facts {
        self.policy.facts(&self.spec)
    }

    /// Whether a live server runs it.
    #[must_use]
    pub fn runs_live(&self) -> bool {
        !self.facts().knows_load
    }

    /// The same under the policy's own name.
    #[must_use]
    pub fn by_own_name(mut self) -> Self {
        self.spec.name = self.name().into();
        self
    }

    /// Whether the parameter is given.
    #[must_use]
    pub fn gives(&self, key: &str) -> bool {
        self.spec.params.iter().any(|(given, _)| given == key)
    }

    /// With this parameter set.
    ///
    /// # Errors
    /// [`SpecError::UnknownParam`] when the policy has none of this key.
    pub fn with_param(mut self, key: &str, value: String) -> Result<Self, SpecError> {
        self.spec.params.push((key.into(), value));
        self.policy.about.check_keys(&self.spec)?;
        Ok(self)
    }
}

impl fmt::Display for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.spec, f)
    }
}

/// Its spec alone: the addresses of the policy's functions differ from run to run.
impl fmt::Debug for ServerSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.spec, f)
    }
}

impl PartialEq for ServerSpec {
    fn eq(&self, other: &Self) -> bool {
        self.spec == other.spec
    }
}

impl Eq for ServerSpec {}

impl ServerPolicy {
    /// The spec that gives it no parameters.
    #[must_use]
    pub fn by_default(&'static self) -> ServerSpec {
        let spec = Spec {
            name: self.about.name.into(),
            params: Vec::new(),
        };
        ServerSpec { policy: self, spec }
    }
}
