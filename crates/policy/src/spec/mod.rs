//! Policies by name: `darc,delta=2,window=50000`.

mod description;
mod param;
mod reader;

pub use description::{Description, GivenParams};
pub(crate) use description::{find, names};
pub use param::{Fallback, Param, ParamKind};
pub(crate) use reader::Reader;

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

/// A policy's name and parameters, as written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The name, as written.
    pub name: String,
    /// `key=value` pairs, in order.
    pub params: Vec<(String, String)>,
}

/// What is wrong with a policy's name or parameters.
#[derive(Clone, PartialEq)]
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
    /// It decides elsewhere than among the workers of one server.
    OtherLevel {
        /// The policy.
        policy: &'static str,
        /// Where it decides: `rack` or `host`.
        level: &'static str,
        /// The command that runs it live.
        command: Option<&'static str>,
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
        valid: Vec<&'static str>,
    },
    /// The parameter stays as it was when the server started.
    SetAtStart {
        /// The policy.
        policy: &'static str,
        /// The parameter.
        key: &'static str,
        /// The parameters that may change while serving.
        changeable: Vec<&'static str>,
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
        expected: String,
    },
}

impl SpecError {
    /// The word that is wrong and those that would be right, for a suggestion.
    #[must_use]
    pub fn alternatives(&self) -> Option<(&str, &[&'static str])> {
        match self {
            Self::UnknownPolicy { name, valid } => Some((name, valid)),
            Self::UnknownParam { key, valid, .. } => Some((key, valid)),
            Self::NotAPair { .. }
            | Self::OtherLevel { .. }
            | Self::OnlyVirtual { .. }
            | Self::Roams { .. }
            | Self::SetAtStart { .. }
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
                    WordList(valid)
                )
            }
            Self::OtherLevel {
                policy,
                level,
                command,
            } => {
                write!(f, "'{policy}' is the policy of a {level}")?;
                if let Some(command) = command {
                    write!(f, ", which '{command}' runs")?;
                }
                f.write_str("; choose what one server runs, such as darc")
            }
            Self::Roams { policy } => {
                write!(
                    f,
                    "under '{policy}' any worker goes on with what another began, which requests that \
                     must resume on their own worker cannot: let them resume anywhere, or choose concord, \
                     shinjuku-sq or tiny-quanta, which keep to it"
                )
            }
            Self::OnlyVirtual { policy } => {
                write!(
                    f,
                    "policy '{policy}' serves all requests at once, which only 'headway sim' and \
                     its kin can; a server comes near with tiny-quanta or shinjuku-sq"
                )
            }
            Self::UnknownParam { policy, key, valid } => unknown_param(f, policy, key, valid),
            Self::SetAtStart {
                policy,
                key,
                changeable,
            } => set_at_start(f, policy, key, changeable),
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

fn unknown_param(
    f: &mut fmt::Formatter<'_>,
    policy: &str,
    key: &str,
    valid: &[&'static str],
) -> fmt::Result {
    if valid.is_empty() {
        return write!(f, "policy '{policy}' takes no parameters, not '{key}'");
    }
    let valid = WordList(valid);
    write!(
        f,
        "policy '{policy}' has no parameter '{key}'; it takes: {valid}"
    )
}

fn set_at_start(
    f: &mut fmt::Formatter<'_>,
    policy: &str,
    key: &str,
    changeable: &[&'static str],
) -> fmt::Result {
    if changeable.is_empty() {
        return write!(
            f,
            "policy '{policy}' has no parameter that may change while it serves: start the server anew to change {key}"
        );
    }
    let changeable = WordList(changeable);
    write!(
        f,
        "policy '{policy}' takes {key} at the start only: start the server anew, or change: {changeable}"
    )
}

/// The sentence: `fn main() -> Result<(), Box<dyn Error>>` prints errors by `Debug`.
impl fmt::Debug for SpecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl core::error::Error for SpecError {}

struct WordList<'a>(&'a [&'static str]);

impl fmt::Display for WordList<'_> {
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

/// A time with its unit, in whole ns; zero needs no unit.
pub(crate) fn time_ns(text: &str) -> Option<u64> {
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
                let _ = crate::PolicySpec::parse(spec);
            }
        }
    }
}
