//! Policies by name: `darc,delta=2,window=50000`.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;
use core::ops::RangeInclusive;

/// A policy's name and parameters, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The name, as written.
    pub name: String,
    /// `key=value` pairs, in order.
    pub params: Vec<(String, String)>,
}

/// What is wrong with a policy's name or parameters.
#[derive(Clone, PartialEq, Debug)]
pub enum SpecError {
    /// A part between commas is not `key=value`.
    NotAPair {
        /// The part.
        part: String,
    },
    /// There is no policy of this name.
    UnknownPolicy {
        /// The name.
        name: String,
        /// All names there are.
        valid: &'static [&'static str],
    },
    /// Only a simulation of one server can follow it.
    OnlyVirtual {
        /// The policy.
        policy: &'static str,
    },
    /// What it interrupts may go on at any worker, where that was forbidden.
    Roams {
        /// The policy.
        policy: &'static str,
    },
    /// The policy has no such parameter.
    UnknownParam {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: String,
        /// Its parameters.
        valid: &'static [&'static str],
    },
    /// The value cannot be what the parameter means.
    BadValue {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: &'static str,
        /// The value.
        value: String,
        /// What it must be.
        expected: &'static str,
    },
}

impl SpecError {
    /// The word that is wrong and those that would be right, for a suggestion.
    #[must_use]
    pub fn alternatives(&self) -> Option<(&str, &'static [&'static str])> {
        match self {
            Self::UnknownPolicy { name, valid } => Some((name, valid)),
            Self::UnknownParam { key, valid, .. } => Some((key, valid)),
            Self::NotAPair { .. }
            | Self::OnlyVirtual { .. }
            | Self::Roams { .. }
            | Self::BadValue { .. } => None,
        }
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPair { part } => {
                write!(f, "policy parameter '{part}' is not key=value")
            }
            Self::UnknownPolicy { name, valid } => {
                write!(
                    f,
                    "no policy is called '{name}'; there are: {}",
                    List(valid)
                )
            }
            Self::Roams { policy } => {
                write!(
                    f,
                    "under '{policy}' any worker goes on with what another began, which requests that \
                     must resume on their own worker cannot; concord, shinjuku-sq and tiny-quanta keep to it"
                )
            }
            Self::OnlyVirtual { policy } => {
                write!(
                    f,
                    "policy '{policy}' serves all requests at once, which only 'headway sim' and \
                     its kin can; a server comes near with tiny-quanta or shinjuku-sq"
                )
            }
            Self::UnknownParam {
                policy,
                key,
                valid: [],
            } => {
                write!(f, "policy '{policy}' takes no parameters, not '{key}'")
            }
            Self::UnknownParam { policy, key, valid } => {
                write!(
                    f,
                    "policy '{policy}' has no parameter '{key}'; it takes: {}",
                    List(valid)
                )
            }
            Self::BadValue {
                policy,
                key,
                value,
                expected,
            } => {
                write!(f, "policy '{policy}': {key}={value}: must be {expected}")
            }
        }
    }
}

impl core::error::Error for SpecError {}

struct List<'a>(&'a [&'static str]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, word) in self.0.iter().enumerate() {
            write!(f, "{}{word}", if index == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}

impl core::str::FromStr for Spec {
    type Err = SpecError;

    fn from_str(text: &str) -> Result<Self, SpecError> {
        let mut parts = text.split(',').map(str::trim);
        let name = parts.next().unwrap_or_default().to_string();
        let params = parts.map(pair).collect::<Result<_, _>>()?;
        Ok(Self { name, params })
    }
}

fn pair(part: &str) -> Result<(String, String), SpecError> {
    let (key, value) = part.split_once('=').ok_or_else(|| SpecError::NotAPair {
        part: part.to_string(),
    })?;
    Ok((key.trim().to_string(), value.trim().to_string()))
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)?;
        self.params
            .iter()
            .try_for_each(|(key, value)| write!(f, ",{key}={value}"))
    }
}

/// A parameter as it was used.
#[derive(Clone, PartialEq, Debug)]
pub enum Value {
    /// A number without unit.
    Number(f64),
    /// A time, ns.
    Time(u64),
    /// One of a few words.
    Word(&'static str),
    /// Words of the writer's own, such as a list of parts.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Time(ns) if *ns > 0 && ns % 1_000_000_000 == 0 => {
                write!(f, "{}s", ns / 1_000_000_000)
            }
            Self::Time(ns) if *ns > 0 && ns % 1_000_000 == 0 => write!(f, "{}ms", ns / 1_000_000),
            Self::Time(ns) if ns % 1_000 == 0 => write!(f, "{}us", ns / 1_000),
            Self::Time(ns) => write!(f, "{ns}ns"),
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => f.write_str(text),
        }
    }
}

/// The parameters that were used, in the syntax of a [`Spec`]: a run can be repeated from them.
pub type Params = Vec<(&'static str, Value)>;

/// Reads a policy's parameters and notes what was used.
pub(crate) struct Reader<'a> {
    policy: &'static str,
    valid: &'static [&'static str],
    given: &'a [(String, String)],
    used: Params,
}

impl<'a> Reader<'a> {
    /// Refuses parameters that are not `valid`.
    pub(crate) fn new(
        policy: &'static str,
        valid: &'static [&'static str],
        spec: &'a Spec,
    ) -> Result<Self, SpecError> {
        match spec
            .params
            .iter()
            .find(|(key, _)| !valid.contains(&key.as_str()))
        {
            Some((key, _)) => Err(SpecError::UnknownParam {
                policy,
                key: key.clone(),
                valid,
            }),
            None => Ok(Self {
                policy,
                valid,
                given: &spec.params,
                used: Vec::new(),
            }),
        }
    }

    /// A number in `range`.
    pub(crate) fn number(
        &mut self,
        key: &'static str,
        default: f64,
        range: RangeInclusive<f64>,
        expected: &'static str,
    ) -> Result<f64, SpecError> {
        let number = match self.raw(key) {
            None => default,
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && range.contains(&number) => number,
                _ => return Err(self.bad(key, text, expected)),
            },
        };
        self.note(key, Value::Number(number));
        Ok(number)
    }

    /// A whole number in `range`.
    pub(crate) fn whole(
        &mut self,
        key: &'static str,
        default: u64,
        range: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<u64, SpecError> {
        let number = match self.raw(key) {
            None => default,
            Some(text) => match text.parse::<u64>() {
                Ok(number) if range.contains(&number) => number,
                _ => return Err(self.bad(key, text, expected)),
            },
        };
        self.note(key, Value::Number(number as f64));
        Ok(number)
    }

    /// A time in `range`, ns: `500ns`, `5us`, `0.5us`, `2ms`, `1s`.
    pub(crate) fn time(
        &mut self,
        key: &'static str,
        default_ns: u64,
        range: RangeInclusive<u64>,
        expected: &'static str,
    ) -> Result<u64, SpecError> {
        let time_ns = match self.raw(key) {
            None => default_ns,
            Some(text) => match time_ns(text) {
                Some(ns) if range.contains(&ns) => ns,
                _ => return Err(self.bad(key, text, expected)),
            },
        };
        self.note(key, Value::Time(time_ns));
        Ok(time_ns)
    }

    /// One of `choices`, the first by default; its position.
    pub(crate) fn word(
        &mut self,
        key: &'static str,
        choices: &'static [&'static str],
        expected: &'static str,
    ) -> Result<usize, SpecError> {
        let choice = match self.raw(key) {
            None => 0,
            Some(text) => match choices.iter().position(|&choice| choice == text) {
                Some(choice) => choice,
                None => return Err(self.bad(key, text, expected)),
            },
        };
        self.note(key, Value::Word(choices[choice]));
        Ok(choice)
    }

    /// Times joined by `/`, in ascending order; none by default.
    pub(crate) fn times(
        &mut self,
        key: &'static str,
        expected: &'static str,
    ) -> Result<Vec<u64>, SpecError> {
        let Some(text) = self.raw(key) else {
            return Ok(Vec::new());
        };
        let times: Option<Vec<u64>> = text.split('/').map(time_ns).collect();
        match times {
            Some(times) if (2..=1000).contains(&times.len()) && times.is_sorted() => {
                self.note(key, Value::Text(text.to_string()));
                Ok(times)
            }
            _ => Err(self.bad(key, text, expected)),
        }
    }

    /// The words as written.
    pub(crate) fn text(&self, key: &'static str, default: &'a str) -> &'a str {
        self.raw(key).unwrap_or(default)
    }

    /// Notes what was made of a parameter that was read as [`text`](Self::text).
    /// Parts that share a parameter each read it.
    pub(crate) fn note(&mut self, key: &'static str, value: Value) {
        if !self.used.iter().any(|(noted, _)| *noted == key) {
            self.used.push((key, value));
        }
    }

    /// Refuses what was given and never read, so that nothing is ignored in silence.
    pub(crate) fn refuse_unread(&self, expected: &'static str) -> Result<(), SpecError> {
        let unread = |key: &&&str| !self.used.iter().any(|(noted, _)| noted == *key);
        let given = |key: &&&str| self.given.iter().any(|(name, _)| name == **key);
        match self.valid.iter().filter(unread).find(given) {
            Some(&key) => Err(self.bad(key, self.text(key, ""), expected)),
            None => Ok(()),
        }
    }

    /// What was used.
    pub(crate) fn used(self) -> Params {
        self.used
    }

    /// The last of repeated keys wins, as with flags.
    fn raw(&self, key: &'static str) -> Option<&'a str> {
        debug_assert!(self.valid.contains(&key), "{key} is read but not declared");
        self.given
            .iter()
            .rev()
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    /// The value cannot be what the parameter means.
    pub(crate) fn bad(&self, key: &'static str, value: &str, expected: &'static str) -> SpecError {
        SpecError::BadValue {
            policy: self.policy,
            key,
            value: value.to_string(),
            expected,
        }
    }
}

/// A time with its unit, in whole ns; zero needs no unit.
fn time_ns(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];
    if text == "0" {
        return Some(0);
    }
    let (number, ns) = UNITS
        .iter()
        .find_map(|(unit, ns)| Some((text.strip_suffix(unit)?, ns)))?;
    let ns = number.trim().parse::<f64>().ok()? * ns;
    // By hand: `round` is not in core.
    (ns.is_finite() && (0.0..=1e18).contains(&ns)).then_some((ns + 0.5) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_spec_reads_back_as_written() {
        let spec: Spec = "darc, delta=3,window=100".parse().unwrap();
        assert_eq!(spec.to_string(), "darc,delta=3,window=100");
    }

    #[test]
    fn a_parameter_without_value_is_named() {
        let error = "darc,delta".parse::<Spec>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "policy parameter 'delta' is not key=value"
        );
    }

    #[test]
    fn times_carry_their_unit_and_read_back_as_written() {
        let cases = [
            ("0", 0),
            ("500ns", 500),
            ("0.5us", 500),
            ("5us", 5_000),
            ("2ms", 2_000_000),
            ("1s", 1_000_000_000),
        ];
        for (text, ns) in cases {
            assert_eq!(time_ns(text), Some(ns), "{text}");
            assert_eq!(time_ns(&Value::Time(ns).to_string()), Some(ns), "{text}");
        }
        for text in ["", "5", "us", "-1us", "5 minutes", "infs", "1e300s"] {
            assert_eq!(time_ns(text), None, "{text}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(text: String) {
            if let Ok(spec) = text.parse::<Spec>() {
                let _ = crate::systems::find(&spec.name);
            }
        }
    }
}
