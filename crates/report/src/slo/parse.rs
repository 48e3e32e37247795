//! The SLO grammar: `SCOPE.MEASURE.STATISTIC<=BOUND`, joined by commas.

use headway_words::remedy;

use super::bound::{Bound, Measure, Scope, Statistic};

const SCOPES: [(&str, ()); 2] = [("class", ()), ("overall", ())];
const MEASURES: [(&str, Measure); 2] = [
    ("latency", Measure::Latency),
    ("slowdown", Measure::Slowdown),
];
const STATISTICS: [(&str, Statistic); 7] = [
    ("mean", Statistic::Mean),
    ("p50", Statistic::P50),
    ("p90", Statistic::P90),
    ("p99", Statistic::P99),
    ("p999", Statistic::P999),
    ("p99.9", Statistic::P999),
    ("max", Statistic::Max),
];
/// Units of time, in µs.
const UNITS: [(&str, f64); 6] = [
    ("ns", 1e-3),
    ("us", 1.0),
    ("µs", 1.0),
    ("ms", 1e3),
    ("s", 1e6),
    ("min", 60e6),
];

/// Why an SLO cannot be used. Columns count characters from 1.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub enum SloError {
    /// A word that the grammar does not know.
    #[error("SLO, column {column}: unknown {what} `{word}`; {remedy}")]
    UnknownWord {
        /// Where the word starts.
        column: usize,
        /// The kind of word expected there.
        what: &'static str,
        /// The word found.
        word: String,
        /// The nearest valid word, or all of them.
        remedy: String,
    },
    /// A bound without the shape `SCOPE.MEASURE.STATISTIC<=BOUND`.
    #[error("SLO, column {column}: {problem}; write it like `class.*.slowdown.p999<=10`")]
    Shape {
        /// Where the error starts.
        column: usize,
        /// The missing or superfluous part.
        problem: &'static str,
    },
    /// A limit that is not a positive number with the unit its measure needs.
    #[error("SLO, column {column}: `{text}` is no bound for a {measure}; write {example}")]
    Limit {
        /// Where the limit starts.
        column: usize,
        /// The limit as written.
        text: String,
        /// The bounded measure.
        measure: Measure,
        /// An example of a valid limit.
        example: &'static str,
    },
    /// A class that the workload does not have.
    #[error("SLO: the workload has no class `{name}`; {remedy}")]
    UnknownClass {
        /// The name in the SLO.
        name: String,
        /// The nearest class's name, or all of them.
        remedy: String,
    },
}

headway_words::debug_is_display!(SloError);

impl SloError {
    pub(super) fn unknown_class(name: &str, classes: &[&str]) -> Self {
        let remedy = remedy(name, classes);
        Self::UnknownClass {
            name: name.to_owned(),
            remedy,
        }
    }
}

/// A part of the text with its column.
#[derive(Clone, Copy)]
struct Span<'a> {
    text: &'a str,
    column: usize,
}

impl<'a> Span<'a> {
    fn after(self, bytes: usize) -> Self {
        let column = self.column + self.text[..bytes].chars().count();
        Self {
            text: &self.text[bytes..],
            column,
        }
    }

    fn trim(self) -> Self {
        let start = self.text.len() - self.text.trim_start().len();
        let trimmed = self.after(start);
        Self {
            text: trimmed.text.trim_end(),
            ..trimmed
        }
    }

    /// The parts on both sides of the first `mark`.
    fn split(self, mark: &str) -> Option<(Self, Self)> {
        let at = self.text.find(mark)?;
        Some((
            Self {
                text: &self.text[..at],
                ..self
            },
            self.after(at + mark.len()),
        ))
    }

    /// The parts on both sides of the last `mark`.
    fn rsplit(self, mark: &str) -> Option<(Self, Self)> {
        let at = self.text.rfind(mark)?;
        Some((
            Self {
                text: &self.text[..at],
                ..self
            },
            self.after(at + mark.len()),
        ))
    }

    /// The parts on both sides of the dot before the statistic: `p99.9` has a dot itself.
    fn rsplit_statistic(self) -> Option<(Self, Self)> {
        let (rest, last) = self.rsplit(".")?;
        match rest.rsplit(".") {
            Some((before, percentile)) if percentile.text == "p99" && last.text == "9" => {
                let whole = Self {
                    text: &self.text[self.text.len() - "p99.9".len()..],
                    column: percentile.column,
                };
                Some((before, whole))
            }
            _ => Some((rest, last)),
        }
    }

    fn shape(self, problem: &'static str) -> SloError {
        SloError::Shape {
            column: self.column,
            problem,
        }
    }

    fn one_of<T: Copy>(self, what: &'static str, words: &[(&str, T)]) -> Result<T, SloError> {
        let found = words.iter().find(|(word, _)| *word == self.text);
        found
            .map(|&(_, meaning)| meaning)
            .ok_or_else(|| SloError::UnknownWord {
                column: self.column,
                what,
                word: self.text.to_owned(),
                remedy: remedy(self.text, words.iter().map(|&(word, _)| word)),
            })
    }
}

pub(super) fn bounds(text: &str) -> Result<Vec<Bound>, SloError> {
    let mut rest = Span { text, column: 1 };
    let mut bounds = Vec::new();
    while let Some((first, others)) = rest.split(",") {
        bounds.push(bound(first.trim())?);
        rest = others;
    }
    bounds.push(bound(rest.trim())?);
    Ok(bounds)
}

fn bound(span: Span<'_>) -> Result<Bound, SloError> {
    if span.text.is_empty() {
        return Err(span.shape("a bound is missing"));
    }
    let (left, limit) = span
        .split("<=")
        .ok_or_else(|| span.shape("`<=` is missing"))?;
    let BoundedFigure {
        scope,
        measure,
        statistic,
    } = figure(left.trim())?;
    let at_most = self::limit(limit.trim(), measure)?;
    Ok(Bound {
        scope,
        measure,
        statistic,
        at_most,
    })
}

/// Scope, measure and statistic of a bound.
struct BoundedFigure {
    scope: Scope,
    measure: Measure,
    statistic: Statistic,
}

/// `SCOPE.MEASURE.STATISTIC`, taken from both ends since a class's name may hold dots.
fn figure(span: Span<'_>) -> Result<BoundedFigure, SloError> {
    let incomplete = || span.shape("scope, measure and statistic are needed");
    let (head, rest) = span.split(".").ok_or_else(incomplete)?;
    head.one_of("scope", &SCOPES)?;
    let (rest, statistic) = rest.rsplit_statistic().ok_or_else(incomplete)?;
    let (scope, measure) = match rest.rsplit(".") {
        Some((name, measure)) if head.text == "class" => (class(name)?, measure),
        Some((extra, _)) => return Err(extra.shape("`overall` takes no name")),
        None if head.text == "overall" => (Scope::Overall, rest),
        None => return Err(rest.shape("`class` needs a name, or `*` for each class")),
    };
    let measure = measure.one_of("measure", &MEASURES)?;
    Ok(BoundedFigure {
        scope,
        measure,
        statistic: statistic.one_of("statistic", &STATISTICS)?,
    })
}

fn class(name: Span<'_>) -> Result<Scope, SloError> {
    match name.text {
        "" => Err(name.shape("the class's name is empty")),
        "*" => Ok(Scope::EveryClass),
        name => Ok(Scope::Class(name.to_owned())),
    }
}

fn limit(span: Span<'_>, measure: Measure) -> Result<f64, SloError> {
    let invalid = |example| SloError::Limit {
        column: span.column,
        text: span.text.to_owned(),
        measure,
        example,
    };
    match measure {
        Measure::Slowdown => positive(span.text).ok_or_else(|| invalid("a number, like `10`")),
        Measure::Latency => {
            let digits = span
                .text
                .trim_end_matches(|c: char| c.is_alphabetic())
                .len();
            let example = "a duration with its unit, like `250us`";
            let number = positive(&span.text[..digits]).ok_or_else(|| invalid(example))?;
            let unit = span.after(digits);
            if unit.text.is_empty() {
                return Err(invalid(example));
            }
            Ok(number * unit.one_of("unit of time", &UNITS)?)
        }
    }
}

fn positive(text: &str) -> Option<f64> {
    text.trim()
        .parse()
        .ok()
        .filter(|number: &f64| number.is_finite() && *number > 0.0)
}
