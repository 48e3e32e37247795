//! How a trace or log is read.

use crate::log::format::Format;
use crate::log::model::ServiceModel;

/// How a trace or log is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TraceOptions {
    /// The format; without one the first line determines it.
    pub format: Option<Format>,
    /// The service times of operations, for logs that have none.
    pub services: ServiceModel,
    /// Whether rows whose requests took no time are left out and counted, rather than refused.
    pub skip_zero: bool,
}
