//! Request classes, as a server declares them.

use std::time::Duration;

use headway_policy::ClassHint;

/// What reports call the class of requests of no declared class.
pub(crate) const UNKNOWN_NAME: &str = "unknown";

/// A request class, as declared.
///
/// ```
/// use headway_runtime::DeclaredClass;
/// use std::time::Duration;
///
/// let scan = DeclaredClass::new("scan", Duration::from_micros(500)).slo(Duration::from_millis(5)).long(true);
/// assert_eq!(scan.hint.slo_ns, Some(5_000_000));
/// ```
#[derive(Clone, PartialEq, Debug)]
pub struct DeclaredClass {
    /// What reports call it: another name than the other classes', and not `unknown`, which is the server's own.
    pub name: String,
    /// What is known of it before the first request.
    pub hint: ClassHint,
}

impl DeclaredClass {
    /// A class of this name and expected service time; 0 where nobody knows it.
    #[must_use]
    pub fn new(name: impl Into<String>, mean: Duration) -> Self {
        Self {
            name: name.into(),
            hint: ClassHint::new(mean.as_nanos() as f64, 0.0),
        }
    }

    /// How long a request of the class may stay in the server, by which `edf` and `shinjuku-mq` rank it; several of its service times
    /// unless chosen.
    #[must_use]
    pub fn slo(mut self, within: Duration) -> Self {
        self.hint.slo_ns = Some(u64::try_from(within.as_nanos()).unwrap_or(u64::MAX));
        self
    }

    /// Whether policies that treat long requests apart count the class among them; unless chosen, those of ten times the shortest class's
    /// service time or more are.
    #[must_use]
    pub fn long(mut self, long: bool) -> Self {
        self.hint.long = Some(long);
        self
    }
}
