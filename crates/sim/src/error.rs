//! Why an experiment cannot be run.

use headway_policy::spec::{Spec, SpecError};
use headway_report::slo::SloError;

/// Why an experiment cannot be run.
#[derive(thiserror::Error)]
pub enum SimError {
    /// The policy's name or parameters are wrong.
    #[error(transparent)]
    Policy(#[from] SpecError),
    /// The policy's parameters are wrong with the measured cost of an interruption among them.
    #[error("with the measured cost of an interruption, {0}")]
    WithMeasuredCost(#[source] SpecError),
    /// The applications' limits are wrong.
    #[error(transparent)]
    Host(#[from] headway_policy::host::ShapeError),
    /// The workload is wrong.
    #[error(transparent)]
    Workload(#[from] headway_workload::Error),
    /// There are several servers and no rack's policy that chooses among them.
    #[error(
        "'{policy}' is a server's policy: who gets which request of several servers? Say racksched,inner={policy}"
    )]
    NoSwitch {
        /// The policy.
        policy: String,
    },
    /// A host's policy, where a server or a rack is simulated.
    #[error(
        "'{policy}' deals the cores of a host out to applications; choose a policy of a server or a rack, such as darc"
    )]
    OfHost {
        /// The policy.
        policy: String,
    },
    /// The experiment states the requests' flows, and the policy's parameters state others.
    #[error("'{policy}' draws flows of its own: leave its flows out, or those of the requests")]
    FlowsTwice {
        /// The policy.
        policy: String,
    },
    /// The policy is not that of one server with queues, and the experiment limits what may have begun.
    #[error(
        "'{policy}' is not the policy of one server, so nothing limits the requests that have begun; choose one such as srpt, or leave the limit out"
    )]
    NoAdmission {
        /// The policy.
        policy: String,
    },
    /// Two applications of a host have one name.
    #[error("two applications are called '{app}': give each a name of its own")]
    SameApp {
        /// The name.
        app: String,
    },
    /// A host's application serves a trace.
    #[error(
        "application '{app}': a trace is replayed at the times it recorded, and a host offers requests at a rate: 'headway fit TRACE --fit-out FILE' makes a workload of it"
    )]
    TraceOnHost {
        /// The application.
        app: String,
    },
    /// A host's application serves a workload whose mix changes in a way that a host does not simulate.
    #[error("application '{app}': a host offers a workload with phases {offers}")]
    PhasesOnHost {
        /// The application.
        app: String,
        /// How it can offer one.
        offers: &'static str,
    },
    /// A class's own SLO cannot be read.
    #[error("the slo of class '{class}': {source}")]
    ClassSlo {
        /// The class.
        class: String,
        /// The fault in it.
        source: SloError,
    },
    /// A quantity is out of range.
    #[error("{what} must be {expected}, not {given}")]
    OutOfRange {
        /// The quantity.
        what: &'static str,
        /// Its valid values.
        expected: String,
        /// The value given.
        given: String,
    },
}

headway_words::debug_is_display!(SimError);

impl SimError {
    pub(crate) fn of_host(policy: &Spec) -> Self {
        Self::OfHost {
            policy: policy.to_string(),
        }
    }
}

/// `Ok` where the figure lies between the two.
pub(crate) fn in_range(
    what: &'static str,
    given: f64,
    least: f64,
    most: f64,
) -> Result<(), SimError> {
    if given >= least && given <= most {
        return Ok(());
    }
    let expected = if least == f64::MIN_POSITIVE {
        format!("above 0 and at most {most}")
    } else {
        format!("{least} to {most}")
    };
    Err(SimError::OutOfRange {
        what,
        expected,
        given: given.to_string(),
    })
}
