//! What arrives: classes, shares, arrival process, phases.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use headway_words::nearest;

use crate::error::{Error, UnknownWorkload, unreadable};
use crate::file::{SETTINGS_BYTES_MAX, read_regular};
use crate::{NAMES, Service, Trace, check, named, toml_read, toml_write};

/// A workload: everything about the requests except how many of them come per second.
///
/// Classes are identified by name. Their indices, used in [`Arrival`](crate::Arrival), follow the
/// order of first appearance in `classes` and then in the phases' classes.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// What reports call it.
    pub name: String,
    /// How arrivals follow one another.
    pub arrivals: Arrivals,
    /// The mix when there are no phases; declarations of classes (it may be empty) when there are.
    pub classes: Vec<Class>,
    /// Mixes that follow one another; the last goes on for ever. Empty when the mix never changes.
    pub phases: Vec<Phase>,
}

/// A class of requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// Its name, unique in its mix.
    pub name: String,
    /// The fraction of requests of this class, from 0 to 1; a mix's shares sum to 1 ± 0.002.
    pub share: f64,
    /// How long its requests take.
    pub service: Service,
    /// Whether policies that tell long classes from short ones should take it as long; `None`
    /// leaves that to the policy.
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

/// A mix that holds for a while.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// How long it holds, at least 1 ns.
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
    pub fn new(name: impl Into<String>, share: f64, service: Service) -> Self {
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

    /// The workload of the literature called `name`, one of [`NAMES`], or none.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        named::named(name)
    }

    /// The workload called `name_or_path`: a [`Workload::named`] one, else a `.csv` trace, else a
    /// workload file.
    ///
    /// # Errors
    /// [`Error::Unknown`], with the nearest name, when it is neither a name nor an existing file
    /// and does not look like a path; else the errors of reading the file.
    pub fn resolve(name_or_path: &str) -> Result<Self, Error> {
        if let Some(workload) = Self::named(name_or_path) {
            return Ok(workload);
        }
        let path = Path::new(name_or_path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("csv") => Ok(Trace::read(path)?.into_workload(file_stem(path))),
            Some("toml") => Self::from_toml_file(path),
            _ if path.is_file() || path.components().count() > 1 => Self::from_toml_file(path),
            _ => Err(unknown(name_or_path).into()),
        }
    }

    /// Reads a workload file; see the [crate's documentation](crate) for its format.
    ///
    /// # Errors
    /// [`Error::Read`] when it, or a file it refers to, cannot be read; [`Error::Located`] for a
    /// mistake in one of them.
    pub fn from_toml_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = read_regular(path, SETTINGS_BYTES_MAX)
            .map_err(|source| unreadable("workload", path.to_owned(), source))?;
        Self::from_toml_str(&text, path)
    }

    /// Reads a workload from a text. `path` is named in errors, gives the default name, and its
    /// folder is where relative paths in the text start; it need not exist. Never panics.
    ///
    /// # Errors
    /// As for [`Workload::from_toml_file`].
    pub fn from_toml_str(text: &str, path: impl AsRef<Path>) -> Result<Self, Error> {
        toml_read::read(text, path.as_ref())
    }

    /// Writes a workload file that reads back as an equal workload. Traces and samples that came
    /// from a file are written as that file's name, as it was given.
    #[must_use]
    pub fn to_toml(&self) -> String {
        toml_write::write(self)
    }

    /// Whether the workload makes sense: shares sum to 1 ± 0.002 in every mix, parameters are in
    /// range, names are unique. Workloads read from files and named ones always pass.
    ///
    /// # Errors
    /// [`Error::Invalid`] with the first field that is wrong.
    pub fn check(&self) -> Result<(), Error> {
        check::workload(self)
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
        weighted(self.initial_mix(), Service::second_moment_ns2)
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
    weighted(mix, Service::mean_ns)
}

/// Divided by the sum of the shares: a mix of published, rounded shares need not sum to exactly 1.
fn weighted(mix: &[Class], moment: impl Fn(&Service) -> f64) -> f64 {
    let sum: f64 = mix
        .iter()
        .map(|class| class.share * moment(&class.service))
        .sum();
    sum / mix.iter().map(|class| class.share).sum::<f64>()
}

fn unknown(name: &str) -> UnknownWorkload {
    UnknownWorkload {
        name: name.to_owned(),
        nearest: nearest(name, NAMES),
    }
}

pub(crate) fn file_stem(path: &Path) -> String {
    let stem: PathBuf = path.file_stem().unwrap_or(path.as_os_str()).into();
    stem.display().to_string()
}
