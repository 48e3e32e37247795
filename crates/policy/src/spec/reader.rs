//! Reads a spec by a policy's description.

use super::{Description, Param, ParamKind, Params, Spec, SpecError, Value, time_ns};
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// Reads a policy's parameters and notes what was used.
///
/// Each is read by its key, as the description has it; a key that is not described, or is of another kind, is a fault of
/// the policy and panics.
pub(crate) struct Reader<'a> {
    about: &'static Description,
    given: &'a [(String, String)],
    used: Params,
}

impl<'a> Reader<'a> {
    /// Refuses keys that are not described.
    pub(crate) fn new(about: &'static Description, spec: &'a Spec) -> Result<Self, SpecError> {
        about.check_keys(spec)?;
        Ok(Self {
            about,
            given: &spec.params,
            used: Vec::new(),
        })
    }

    /// A number.
    pub(crate) fn number(&mut self, key: &'static str) -> Result<f64, SpecError> {
        self.number_or(key, 0.0)
    }

    /// A number whose default may follow from something else: then it is `derived`.
    pub(crate) fn number_or(&mut self, key: &'static str, derived: f64) -> Result<f64, SpecError> {
        let param = self.param(key);
        let ParamKind::Number { default, min, max } = param.kind else {
            panic!("{key} is no number");
        };
        let number = match self.raw(key) {
            None => default.or(derived),
            Some(text) => match text.parse::<f64>() {
                Ok(number) if number.is_finite() && (min..=max).contains(&number) => number,
                _ => return Err(self.wrong(param, text)),
            },
        };
        self.note(key, Value::Number(number));
        Ok(number)
    }

    /// A whole number.
    pub(crate) fn whole(&mut self, key: &'static str) -> Result<u64, SpecError> {
        self.whole_or(key, 0)
    }

    /// A whole number whose default may follow from something else: then it is `derived`.
    pub(crate) fn whole_or(&mut self, key: &'static str, derived: u64) -> Result<u64, SpecError> {
        let param = self.param(key);
        let ParamKind::Whole { default, min, max } = param.kind else {
            panic!("{key} is no whole number");
        };
        let number = match self.raw(key) {
            None => default.or(derived),
            Some(text) => match text.parse::<u64>() {
                Ok(number) if (min..=max).contains(&number) => number,
                _ => return Err(self.wrong(param, text)),
            },
        };
        self.note(key, Value::Number(number as f64));
        Ok(number)
    }

    /// A time, ns: `500ns`, `5us`, `0.5us`, `2ms`, `1s`.
    pub(crate) fn time(&mut self, key: &'static str) -> Result<u64, SpecError> {
        self.time_or(key, 0)
    }

    /// A time whose default may follow from something else: then it is `derived`, ns.
    pub(crate) fn time_or(&mut self, key: &'static str, derived: u64) -> Result<u64, SpecError> {
        let param = self.param(key);
        let ParamKind::Time { default, min, max } = param.kind else {
            panic!("{key} is no time");
        };
        let time_ns = match self.raw(key) {
            None => default.or(derived),
            Some(text) => match time_ns(text) {
                Some(ns) if (min..=max).contains(&ns) => ns,
                _ => return Err(self.wrong(param, text)),
            },
        };
        self.note(key, Value::Time(time_ns));
        Ok(time_ns)
    }

    /// The word chosen.
    pub(crate) fn word(&mut self, key: &'static str) -> Result<&'static str, SpecError> {
        let param = self.param(key);
        let ParamKind::Word(choices) = param.kind else {
            panic!("{key} is no word");
        };
        let choice = match self.raw(key) {
            None => choices[0],
            Some(text) => match choices.iter().find(|&&choice| choice == text) {
                Some(choice) => choice,
                None => return Err(self.wrong(param, text)),
            },
        };
        self.note(key, Value::Word(choice));
        Ok(choice)
    }

    /// Times joined by `/`, in ascending order; none by default.
    pub(crate) fn times(&mut self, key: &'static str) -> Result<Vec<u64>, SpecError> {
        let Some(text) = self.raw(key) else {
            return Ok(Vec::new());
        };
        let times: Option<Vec<u64>> = text.split('/').map(time_ns).collect();
        match times {
            Some(times) if (2..=1000).contains(&times.len()) && times.is_sorted() => {
                self.note(key, Value::Text(text.to_string()));
                Ok(times)
            }
            _ => Err(self.wrong(self.param(key), text)),
        }
    }

    /// The words as written, or the default. Whoever reads them [notes](Self::note) what it made of them.
    pub(crate) fn text(&self, key: &'static str) -> &'a str {
        self.raw(key).unwrap_or(match self.param(key).kind {
            ParamKind::Text { default, .. } => default,
            _ => "",
        })
    }

    /// Notes what was made of a parameter that was read as [`text`](Self::text).
    /// Parts that share a parameter each read it.
    pub(crate) fn note(&mut self, key: &'static str, value: Value) {
        if !self.used.iter().any(|(noted, _)| *noted == key) {
            self.used.push((key, value));
        }
    }

    /// Refuses what was given and never read, so that nothing is ignored in silence.
    pub(crate) fn refuse_unread(&self, expected: &str) -> Result<(), SpecError> {
        let params = self.about.params.iter();
        let mut unread = params.filter(|param| self.used.iter().all(|(key, _)| *key != param.key));
        match unread.find_map(|param| Some((param.key, self.raw(param.key)?))) {
            Some((key, value)) => Err(self.bad(key, value, expected)),
            None => Ok(()),
        }
    }

    /// Whether the policy has a parameter of this key.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.about.param(key).is_some()
    }

    /// What was used.
    pub(crate) fn used(self) -> Params {
        self.used
    }

    /// The last of repeated keys wins, as with flags.
    fn raw(&self, key: &str) -> Option<&'a str> {
        let mut last_first = self.given.iter().rev();
        last_first
            .find(|(name, _)| name == key)
            .map(|(_, value)| value.as_str())
    }

    fn param(&self, key: &'static str) -> &'static Param {
        match self.about.param(key) {
            Some(param) => param,
            None => panic!("{} does not describe its {key}", self.about.name),
        }
    }

    /// The value cannot be what the parameter means.
    pub(crate) fn bad(&self, key: &'static str, value: &str, expected: &str) -> SpecError {
        SpecError::BadValue {
            policy: self.about.name,
            key,
            value: value.to_string(),
            expected: expected.to_string(),
        }
    }

    /// The value is none of those described.
    pub(crate) fn wrong(&self, param: &'static Param, value: &str) -> SpecError {
        self.bad(param.key, value, &param.expected())
    }

    /// The text is not of the form described.
    pub(crate) fn wrong_text(&self, key: &'static str) -> SpecError {
        self.wrong(self.param(key), self.text(key))
    }
}
