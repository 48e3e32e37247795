//! A parameter as its policy describes it: the only place of its default and range.

use super::Value;
use alloc::format;
use alloc::string::{String, ToString};

/// A parameter of a policy.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Param {
    /// As it is written before the `=`.
    pub key: &'static str,
    /// What it sets, in a line.
    pub meaning: &'static str,
    /// What is counted, in the plural; empty for a time, a word, or a number without unit.
    pub unit: &'static str,
    /// What bounds a whole number more tightly than its kind does, in words; empty where nothing does.
    pub bound: &'static str,
    /// Its values.
    pub kind: ParamKind,
    /// Whether it may change while a server serves: its policy then keeps what it has learned, and what waits.
    pub while_serving: bool,
}

/// The values of a parameter.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum ParamKind {
    /// A number.
    Number {
        /// Where none is given.
        default: Fallback<f64>,
        /// The least; [`f64::MIN_POSITIVE`] for anything above 0.
        min: f64,
        /// The most; [`f64::MAX`] for no bound.
        max: f64,
    },
    /// A whole number.
    Whole {
        /// Where none is given.
        default: Fallback<u64>,
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A time with its unit, ns.
    Time {
        /// Where none is given.
        default: Fallback<u64>,
        /// The least, ns.
        min: u64,
        /// The most, ns.
        max: u64,
    },
    /// One of these words, the first by default.
    Word(&'static [&'static str]),
    /// Text of a form of its own.
    Text {
        /// Where none is given; empty for none.
        default: &'static str,
        /// What it must be.
        form: &'static str,
    },
}

/// What a parameter is where it is not given.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fallback<T> {
    /// This value.
    Is(T),
    /// What follows from the server or from other parameters, in words.
    Follows(&'static str),
}

impl<T: Copy> Fallback<T> {
    /// The value, or `derived` where it follows from something else.
    pub(crate) fn or(self, derived: T) -> T {
        match self {
            Self::Is(value) => value,
            Self::Follows(_) => derived,
        }
    }

    fn text(self, show: impl Fn(T) -> String) -> String {
        match self {
            Self::Is(value) => show(value),
            Self::Follows(words) => words.to_string(),
        }
    }
}

impl Param {
    /// A number from `min` to `max`.
    #[must_use]
    pub const fn number(key: &'static str, default: f64, min: f64, max: f64) -> Self {
        let default = Fallback::Is(default);
        Self::of(key, ParamKind::Number { default, min, max })
    }

    /// A whole number from `min` to `max`.
    #[must_use]
    pub const fn whole(key: &'static str, default: u64, min: u64, max: u64) -> Self {
        let default = Fallback::Is(default);
        Self::of(key, ParamKind::Whole { default, min, max })
    }

    /// A time from `min` to `max` ns.
    #[must_use]
    pub const fn time(key: &'static str, default: u64, min: u64, max: u64) -> Self {
        let default = Fallback::Is(default);
        Self::of(key, ParamKind::Time { default, min, max })
    }

    /// One of `choices`, the first by default.
    #[must_use]
    pub const fn word(key: &'static str, choices: &'static [&'static str]) -> Self {
        Self::of(key, ParamKind::Word(choices))
    }

    /// Text that must be `form`.
    #[must_use]
    pub const fn text(key: &'static str, default: &'static str, form: &'static str) -> Self {
        Self::of(key, ParamKind::Text { default, form })
    }

    const fn of(key: &'static str, kind: ParamKind) -> Self {
        Self {
            key,
            meaning: "",
            unit: "",
            bound: "",
            kind,
            while_serving: false,
        }
    }

    /// It may change while a server serves.
    #[must_use]
    pub const fn while_serving(self) -> Self {
        Self {
            while_serving: true,
            ..self
        }
    }

    /// With what it sets.
    #[must_use]
    pub const fn means(self, meaning: &'static str) -> Self {
        Self { meaning, ..self }
    }

    /// Counts these.
    #[must_use]
    pub const fn in_units(self, unit: &'static str) -> Self {
        Self { unit, ..self }
    }

    /// At most this, which follows from the server.
    #[must_use]
    pub const fn at_most(self, bound: &'static str) -> Self {
        Self { bound, ..self }
    }

    /// With a default that follows from something else.
    #[must_use]
    pub const fn following(self, words: &'static str) -> Self {
        let kind = match self.kind {
            ParamKind::Number { min, max, .. } => ParamKind::Number {
                default: Fallback::Follows(words),
                min,
                max,
            },
            ParamKind::Whole { min, max, .. } => ParamKind::Whole {
                default: Fallback::Follows(words),
                min,
                max,
            },
            ParamKind::Time { min, max, .. } => ParamKind::Time {
                default: Fallback::Follows(words),
                min,
                max,
            },
            kind => kind,
        };
        Self { kind, ..self }
    }

    /// The default, as one would write it or in words.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.kind {
            ParamKind::Number { default, .. } => default.text(|number| number.to_string()),
            ParamKind::Whole { default, .. } => default.text(|number| number.to_string()),
            ParamKind::Time { default, .. } => default.text(time),
            ParamKind::Word(choices) => choices[0].to_string(),
            ParamKind::Text { default: "", .. } => "none".to_string(),
            ParamKind::Text { default, .. } => default.to_string(),
        }
    }

    /// The values it may have: a range, or the words.
    #[must_use]
    pub fn values_text(&self) -> String {
        match self.kind {
            ParamKind::Number { min, max, .. } => {
                if min == f64::MIN_POSITIVE {
                    format!("above 0, up to {max}")
                } else if max == f64::MAX {
                    format!("at least {min}")
                } else {
                    format!("{min} to {max}")
                }
            }
            ParamKind::Whole { min, .. } if !self.bound.is_empty() => {
                format!("{min} to {}", self.bound)
            }
            ParamKind::Whole { min, max, .. } => format!("{min} to {}", whole(max)),
            ParamKind::Time { min: 0, max, .. } => format!("up to {}", time(max)),
            ParamKind::Time { min: 1, max, .. } => format!("above 0, up to {}", time(max)),
            ParamKind::Time { min, max, .. } => format!("{} to {}", time(min), time(max)),
            ParamKind::Word(choices) => either(choices),
            ParamKind::Text { form, .. } => form.to_string(),
        }
    }

    /// What a value must be, for an error.
    #[must_use]
    pub fn expected(&self) -> String {
        let values = self.values_text();
        match (self.kind, self.unit) {
            (ParamKind::Number { .. }, "") => format!("a number, {values}"),
            (ParamKind::Whole { .. }, "") => format!("a whole number, {values}"),
            (ParamKind::Number { .. } | ParamKind::Whole { .. }, unit) => {
                format!("a number of {unit}, {values}")
            }
            (ParamKind::Time { min: 0, .. }, _) => format!("a time such as 500ns or 5us, {values}"),
            (ParamKind::Time { min: 1, max, .. }, _) => {
                format!("a time above 0 such as 5us, up to {}", time(max))
            }
            (ParamKind::Time { .. }, _) => {
                format!("a time with its unit, {values}, such as 5us or 50ms")
            }
            (ParamKind::Word(_) | ParamKind::Text { .. }, _) => values,
        }
    }
}

fn time(ns: u64) -> String {
    Value::Time(ns).to_string()
}

/// Large powers of two read better as such.
fn whole(number: u64) -> String {
    if number > 1 << 20 && number.is_power_of_two() {
        format!("2^{}", number.ilog2())
    } else {
        number.to_string()
    }
}

/// `a, b or c`.
fn either(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => (*word).to_string(),
        [most @ .., last] => format!("{} or {last}", most.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_value_must_be_is_said_with_its_unit_and_range() {
        let cases = [
            (
                Param::whole("n", 1, 1, 256).in_units("workers"),
                "a number of workers, 1 to 256",
            ),
            (
                Param::whole("n", 1, 1, 256).at_most("the number of cores"),
                "a whole number, 1 to the number of cores",
            ),
            (
                Param::whole("n", 1, 1, 1 << 40),
                "a whole number, 1 to 2^40",
            ),
            (
                Param::number("x", 2.0, 1.0, f64::MAX),
                "a number, at least 1",
            ),
            (
                Param::number("x", 2.0, f64::MIN_POSITIVE, 9.0),
                "a number, above 0, up to 9",
            ),
            (
                Param::time("t", 5, 1, 1_000_000_000),
                "a time above 0 such as 5us, up to 1s",
            ),
            (Param::word("w", &["a", "b", "c"]), "a, b or c"),
        ];
        for (param, expected) in cases {
            assert_eq!(param.expected(), expected);
        }
    }
}
