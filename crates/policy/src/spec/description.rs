//! What a policy of any level says of itself.

use super::{Param, ParamKind, Spec, SpecError};
use alloc::string::String;
use alloc::vec::Vec;

/// A policy as lists, errors and documentation show it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Description {
    /// Its own name.
    pub name: &'static str,
    /// Names of the papers' systems that mean the same.
    pub aliases: &'static [&'static str],
    /// What it does, in a line.
    pub summary: &'static str,
    /// Where it was published; empty for what has no single source.
    pub paper: &'static str,
    /// Its parameters, in the order of reading.
    pub params: &'static [Param],
}

impl Description {
    /// Whether this is its own name or an alias.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The parameter of this key.
    #[must_use]
    pub fn param(&self, key: &str) -> Option<&'static Param> {
        self.params.iter().find(|param| param.key == key)
    }

    /// The keys of the parameters that may change while a server serves.
    #[must_use]
    pub fn changeable(&self) -> Vec<&'static str> {
        let changeable = self.params.iter().filter(|param| param.while_serving);
        changeable.map(|param| param.key).collect()
    }

    /// Refuses keys that are none of its parameters.
    ///
    /// # Errors
    /// [`SpecError::UnknownParam`].
    pub fn check_keys(&self, spec: &Spec) -> Result<(), SpecError> {
        match spec
            .params
            .iter()
            .find(|(key, _): &&(String, String)| self.param(key).is_none())
        {
            Some((key, _)) => Err(SpecError::UnknownParam {
                policy: self.name,
                key: key.clone(),
                valid: self.params.iter().map(|param| param.key).collect(),
            }),
            None => Ok(()),
        }
    }
}

/// The policy that is called so, by its own name or an alias.
pub(crate) fn find(
    all: &'static [&'static Description],
    name: &str,
) -> Option<&'static Description> {
    all.iter().copied().find(|about| about.is_called(name))
}

/// The own names of all, as a constant.
pub(crate) const fn names<const N: usize>(all: &[&Description]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = all[at].name;
        at += 1;
    }
    names
}

/// A policy's parameters as a spec gives them, or by default.
#[derive(Clone, Copy, Debug)]
pub struct GivenParams<'a> {
    about: &'static Description,
    spec: &'a Spec,
}

impl<'a> GivenParams<'a> {
    /// The parameters that `spec` gives to the policy described.
    #[must_use]
    pub fn new(about: &'static Description, spec: &'a Spec) -> Self {
        Self { about, spec }
    }

    /// The word given, or the default.
    #[must_use]
    pub fn word(&self, key: &str) -> &'a str {
        self.raw(key)
            .unwrap_or_else(|| match self.about.param(key).map(|param| param.kind) {
                Some(ParamKind::Word(choices)) => choices[0],
                _ => "",
            })
    }

    /// The whole number given, or the default; 0 where there is neither.
    #[must_use]
    pub fn whole(&self, key: &str) -> u64 {
        let given = self.raw(key).and_then(|text| text.parse().ok());
        given.unwrap_or_else(|| match self.about.param(key).map(|param| param.kind) {
            Some(ParamKind::Whole { default, .. }) => default.or(0),
            _ => 0,
        })
    }

    /// The last of repeated keys wins, as with flags.
    fn raw(&self, key: &str) -> Option<&'a str> {
        let mut last_first = self.spec.params.iter().rev();
        last_first
            .find(|(given, _)| given == key)
            .map(|(_, value)| value.as_str())
    }
}
