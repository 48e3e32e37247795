//! Errors in workloads, with their place and remedy.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::duration;
use crate::names::NAMES;

/// Why a workload, trace or sample file could not be loaded.
#[derive(Error)]
pub enum Error {
    /// The name is none of [`NAMES`] and no file either.
    #[error(transparent)]
    Unknown(#[from] UnknownWorkload),
    /// A file could not be read.
    #[error("cannot read {what} `{}`: {source}", path.display())]
    Read {
        /// The expected kind of file: `workload`, `trace` or `service times`.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// A file's content is wrong at a known place.
    #[error(transparent)]
    Located(#[from] Box<Located>),
    /// A workload built in code is wrong.
    #[error("workload `{workload}`: {key}: {problem}")]
    Invalid {
        /// The workload's name.
        workload: String,
        /// Dotted path of the offending field, such as `class.share`.
        key: String,
        /// The problem.
        problem: Box<Problem>,
    },
}

headway_words::debug_is_display!(Error);

/// A name that is neither a named workload nor a file.
#[derive(Clone, PartialEq, Eq, Error)]
#[error(
    "no workload and no file is called `{name}`{hint}; workloads by name: {names}",
    hint = suggestion(*nearest),
    names = NAMES.join(", ")
)]
pub struct UnknownWorkload {
    /// The given name.
    pub name: String,
    /// The most similar name, if any is similar.
    pub nearest: Option<&'static str>,
}

headway_words::debug_is_display!(UnknownWorkload);

/// A [`Problem`] and its place; displayed as `FILE:LINE: key: message`.
#[derive(Clone, PartialEq, Error)]
#[error("{file}:{line}: {prefix}{problem}", prefix = if key.is_empty() { String::new() } else { format!("{key}: ") })]
pub struct Located {
    /// The file, as it was named by the caller.
    pub file: String,
    /// Line, from 1.
    pub line: usize,
    /// Dotted path of the offending key, such as `class.service.mean`, or the column of a CSV
    /// file; empty when the file could not be parsed that far.
    pub key: String,
    /// The problem.
    pub problem: Problem,
}

headway_words::debug_is_display!(Located);

/// The problem with a value.
#[derive(Clone, PartialEq, Error)]
#[non_exhaustive]
pub enum Problem {
    /// The file is not well-formed.
    #[error("{0}")]
    Syntax(String),
    /// An unknown key.
    #[error("unknown key{}; known here: {known}", suggestion(nearest.as_deref()))]
    UnknownKey {
        /// The most similar key, if any is similar.
        nearest: Option<String>,
        /// All keys allowed here.
        known: String,
    },
    /// A name (of a distribution, process or class) that is not known.
    #[error("unknown {what} `{given}`{}; known: {known}", suggestion(nearest.as_deref()))]
    UnknownName {
        /// The kind of thing that the name should denote.
        what: &'static str,
        /// The name given.
        given: String,
        /// The most similar name, if any is similar.
        nearest: Option<String>,
        /// All names allowed here.
        known: String,
    },
    /// A required key is missing.
    #[error("missing; {remedy}")]
    Missing {
        /// The remedy: the value to write.
        remedy: &'static str,
    },
    /// A trace lacks a column.
    #[error("missing column; a trace's header row is `time,class,service`{}", instead(nearest.as_deref()))]
    MissingColumn {
        /// The column of the file that may be meant.
        nearest: Option<String>,
    },
    /// A log has no service times, and no model says them.
    #[error(
        "missing column; a trace's header row is `time,class,service`{}; or say how long requests take: --service get=1.2us,*=5us",
        instead(nearest.as_deref())
    )]
    NoServices {
        /// The column of the file that may be meant.
        nearest: Option<String>,
    },
    /// A request of a trace took no time.
    #[error(
        "is zero, and a request takes at least 1ns; --skip-zero leaves such rows out and counts them"
    )]
    ZeroService,
    /// A time of the calendar that is none.
    #[error(
        "`{given}` is no time, such as `2023-11-16 18:17:03.97` or `2023-11-16T18:17:03Z`, from 1970 on"
    )]
    Timestamp {
        /// The time given.
        given: String,
    },
    /// The value has the wrong type.
    #[error("expected {expected}, found {found}")]
    Type {
        /// The required type.
        expected: &'static str,
        /// The type found.
        found: String,
    },
    /// The value is not a duration.
    #[error(transparent)]
    Duration(#[from] duration::DurationParseError),
    /// A number is out of its range.
    #[error("must be {required}, is {given}")]
    Range {
        /// The range.
        required: &'static str,
        /// The value, as text.
        given: String,
    },
    /// The shares of a mix do not sum to 1.
    #[error("the shares of all classes must sum to 1 ± 0.002, but sum to {}", rounded(*.sum))]
    Shares {
        /// Their sum.
        sum: f64,
    },
    /// Two classes of one mix have one name.
    #[error("`{name}` is already the name of another class; give each class its own")]
    DuplicateClass {
        /// The name.
        name: String,
    },
    /// A class is called as reports call all classes together.
    #[error("`{name}` is what reports call all classes together; give the class another name")]
    ReservedClass {
        /// The name.
        name: String,
    },
    /// Trace arrivals go back in time.
    #[error("`{given}` is earlier than the record before it; sort the trace by time")]
    Unsorted {
        /// The time given.
        given: String,
    },
    /// A line of a log is not in the log's format.
    #[error("not a line of {format}; such as: {example}")]
    NotOfFormat {
        /// The format's name.
        format: &'static str,
        /// An example of a line in this format.
        example: &'static str,
    },
    /// The service model has no time for a class of the log.
    #[error("nothing says how long `{class}` takes; add `{class}=2us`, or `*=2us` for all others")]
    Unpriced {
        /// The class.
        class: String,
    },
    /// A value contradicts another.
    #[error("{0}")]
    Conflict(&'static str),
}

headway_words::debug_is_display!(Problem);

/// `; did you mean `x`?`, or nothing.
pub(crate) fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

fn instead(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; is `{name}` meant?"))
}

/// Six decimals are enough to see what is wrong with a sum, and hide rounding noise.
fn rounded(sum: f64) -> f64 {
    (sum * 1e6).round() / 1e6
}

pub(crate) fn unreadable(what: &'static str, path: PathBuf, source: io::Error) -> Error {
    Error::Read { what, path, source }
}
