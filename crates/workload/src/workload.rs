//! The description of the requests: classes, shares, arrival process, phases.

use std::collections::HashSet;
use std::sync::Arc;

use crate::service::ServiceDistribution;
use crate::trace::Trace;

/// A workload: everything about the requests except their rate.
///
/// Classes are identified by name. Their indices, used in [`Arrival`](crate::Arrival), follow the
/// order of first appearance in `classes` and then in the phases' classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// Its name in reports.
    pub name: String,
    /// How arrivals follow one another.
    pub arrivals: Arrivals,
    /// Without phases, the mix. With phases, declarations of classes; it may then be empty.
    pub classes: Vec<Class>,
    /// Successive mixes; the last continues for ever. Empty when the mix never changes.
    pub phases: Vec<Phase>,
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name, unique in its mix.
    pub name: String,
    /// The fraction of requests of this class, from 0 to 1; a mix's shares sum to 1 ± 0.002.
    pub share: f64,
    /// Its requests' service times.
    pub service: ServiceDistribution,
    /// Whether policies that treat long classes apart should treat this class as long; `None`
    /// leaves the choice to the policy.
    pub long: Option<bool>,
    /// The class's service-level objective, in the grammar of `--slo` without the class's name.
    pub slo: Option<String>,
}

/// How arrivals follow one another. All processes are scaled to the offered rate, except a trace.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// Independent exponential gaps.
    Poisson,
    /// Equal gaps.
    Deterministic,
    /// Independent gamma gaps: burstier than Poisson when `cv` is above 1.
    Gamma {
        /// Coefficient of variation of the gaps, from 0.001 to 100.
        cv: f64,
    },
    /// Arrival times, classes and service times exactly as recorded; the offered rate is ignored.
    Trace(Arc<Trace>),
}

/// A mix that holds for a limited time.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// Its duration, at least 1 ns.
    pub duration_ns: u64,
    /// Its mix.
    pub classes: Vec<Class>,
}

impl Arrivals {
    /// The names of the processes in workload files.
    pub const NAMES: [&'static str; 4] = ["poisson", "deterministic", "gamma", "trace"];

    /// The name of the process in workload files.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Deterministic => "deterministic",
            Self::Gamma { .. } => "gamma",
            Self::Trace(_) => "trace",
        }
    }
}

impl Class {
    /// A class without `long` and `slo`.
    #[must_use]
    pub fn new(name: impl Into<String>, share: f64, service: ServiceDistribution) -> Self {
        Self {
            name: name.into(),
            share,
            service,
            long: None,
            slo: None,
        }
    }

    /// The mean service time in nanoseconds.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.service.mean_ns()
    }
}

impl Phase {
    /// The mean service time over this phase's mix, in nanoseconds.
    #[must_use]
    pub fn mean_service_ns(&self) -> f64 {
        mean_service_ns(&self.classes)
    }
}

impl Workload {
    /// A workload with Poisson arrivals and a mix that does not change.
    #[must_use]
    pub fn new(name: impl Into<String>, classes: Vec<Class>) -> Self {
        Self {
            name: name.into(),
            arrivals: Arrivals::Poisson,
            classes,
            phases: Vec::new(),
        }
    }

    /// The names of all classes, in the order of their indices.
    #[must_use]
    pub fn class_names(&self) -> Vec<&str> {
        self.union().map(|class| class.name.as_str()).collect()
    }

    /// Every class once, in the order of the indices, as first declared.
    pub fn union(&self) -> impl Iterator<Item = &Class> {
        let mut seen = HashSet::new();
        let phases = self.phases.iter().flat_map(|phase| &phase.classes);
        self.classes
            .iter()
            .chain(phases)
            .filter(move |class| seen.insert(class.name.as_str()))
    }

    /// The index of the class called `name`, or none.
    #[must_use]
    pub fn class_index(&self, name: &str) -> Option<u16> {
        self.union()
            .position(|class| class.name == name)
            .and_then(|index| index.try_into().ok())
    }

    /// The mix in effect at the start: the first phase's, or the only one.
    #[must_use]
    pub fn initial_mix(&self) -> &[Class] {
        self.phases
            .first()
            .map_or(&self.classes, |phase| &phase.classes)
    }

    /// The mean service time over the [initial mix](Self::initial_mix), in nanoseconds.
    #[must_use]
    pub fn mean_service_ns(&self) -> f64 {
        mean_service_ns(self.initial_mix())
    }

    /// The second moment E\[S²\] of the service time over the initial mix, in ns².
    #[must_use]
    pub fn second_moment_ns2(&self) -> f64 {
        weighted(self.initial_mix(), ServiceDistribution::second_moment_ns2)
    }

    /// The squared coefficient of variation of the service time over the initial mix.
    #[must_use]
    pub fn scv(&self) -> f64 {
        let mean_ns = self.mean_service_ns();
        (self.second_moment_ns2() / (mean_ns * mean_ns) - 1.0).max(0.0)
    }

    /// The rate, in requests per second, that loads `workers` workers to the fraction `load` under
    /// the initial mix: λ = ρ·c ÷ E\[S\].
    #[must_use]
    pub fn rate_for_load(&self, load: f64, workers: usize) -> f64 {
        rate_for_load(self.initial_mix(), load, workers)
    }

    /// The fraction to which `rate_rps` requests per second load `workers` workers under the
    /// initial mix: ρ = λ·E\[S\] ÷ c.
    #[must_use]
    pub fn load_for_rate(&self, rate_rps: f64, workers: usize) -> f64 {
        rate_rps * self.mean_service_ns() / (workers as f64 * 1e9)
    }
}

pub(crate) fn rate_for_load(mix: &[Class], load: f64, workers: usize) -> f64 {
    load * workers as f64 * 1e9 / mean_service_ns(mix)
}

fn mean_service_ns(mix: &[Class]) -> f64 {
    weighted(mix, ServiceDistribution::mean_ns)
}

/// Divided by the sum of the shares: a mix of published, rounded shares need not sum to exactly 1.
fn weighted(mix: &[Class], moment: impl Fn(&ServiceDistribution) -> f64) -> f64 {
    let sum: f64 = mix
        .iter()
        .map(|class| class.share * moment(&class.service))
        .sum();
    sum / mix.iter().map(|class| class.share).sum::<f64>()
}
