//! Admission of policies to a live server. It refuses a policy that the server cannot run before anything starts, and says why.

use crate::error::explain;
use headway_policy::Shape;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::{Admission, Layout, StartError};

/// The reason why a live server refuses a policy, and the setting that would change it.
#[derive(Debug)]
pub(crate) enum Refused {
    /// `--policy`.
    Policy(String),
    /// `--layout`.
    Layout(String),
}

impl Refused {
    /// Turns the reason into an error about the flag.
    pub(crate) fn of_flags(self) -> anyhow::Error {
        match self {
            Self::Policy(why) => crate::error::usage("--policy", why),
            Self::Layout(why) => crate::error::usage("--layout", why),
        }
    }
}

/// How a live server of this shape and layout executes the policy.
pub(crate) fn admit(
    policy: &ServerSpec,
    shape: &Shape,
    layout: Layout,
) -> Result<Admission, Refused> {
    let admitted = headway_runtime::admit(policy, shape);
    let admission = admitted.map_err(|error| match error {
        StartError::Policy(error) => Refused::Policy(explain(&error)),
        other => Refused::Policy(other.to_string()),
    })?;
    if !admission.is_laid_out() && layout != Layout::Auto {
        let policy = policy.name();
        let why = StartError::NothingLaidOut { policy };
        return Err(Refused::Layout(why.to_string()));
    }
    Ok(admission)
}
