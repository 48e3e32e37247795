//! Why a round does not count.

use headway_load::Flaw;
use headway_report::format;
use headway_runtime::Stats;
use headway_workload::Workload;
use std::fmt;

/// How far handlers' times may be from those the load was chosen by, relative. On a quiet machine they stay within
/// a few percent; another program on the cores doubles them.
const TIME_TOLERANCE: f64 = 0.2;

/// Why a round does not count.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Objection {
    /// The client rather than the server was measured.
    Client(Flaw),
    /// Handlers took another time than they were measured to: the load was not the one that is claimed.
    Disturbed {
        class: String,
        took_us: f64,
        expected_us: f64,
    },
}

impl Objection {
    /// Whether the machine ran something else, and no more: nothing is missing, and what was waited for is in the latencies.
    pub(crate) fn only_delays(&self) -> bool {
        matches!(
            self,
            Self::Client(Flaw::Late { .. }) | Self::Disturbed { .. }
        )
    }
}

impl fmt::Display for Objection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Client(flaw) => write!(out, "{flaw}"),
            Self::Disturbed {
                class,
                took_us,
                expected_us,
            } => write!(
                out,
                "a {class} took {} on average, and {} when the load was chosen: something else used the cores {}",
                format::duration_us(*took_us),
                format::duration_us(*expected_us),
                if took_us > expected_us { "now" } else { "then" }
            ),
        }
    }
}

/// Whether the class that brings the load took about its time; nothing to object to where it did.
pub(crate) fn disturbance(stats: &Stats, workload: &Workload) -> Option<Objection> {
    let brings = |class: &&headway_workload::Class| class.share * class.mean_ns();
    let heaviest = workload
        .union()
        .max_by(|a, b| brings(a).total_cmp(&brings(b)))?;
    let class = stats
        .classes
        .iter()
        .find(|class| class.name == heaviest.name)?;
    let (took_ns, expected_ns) = (class.mean_cpu_ns()?, heaviest.mean_ns());
    let differs = (took_ns / expected_ns - 1.0).abs() > TIME_TOLERANCE;
    differs.then(|| Objection::Disturbed {
        class: heaviest.name.clone(),
        took_us: took_ns / 1e3,
        expected_us: expected_ns / 1e3,
    })
}
