//! What was measured: figures by system and name, alone or along an axis.

use serde::Serialize;
use std::fmt;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Datum {
    /// Whose it is: a system's name in the file, behind `ID/` where the measurement has an id.
    pub system: String,
    /// What it is: `rps`, `overall.slowdown.p999` …
    pub what: String,
    /// Where on the axis, for a point of a curve.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The figure; not a number (`null` in JSON) where there is none, as for an overloaded tail.
    pub value: f64,
}

/// All figures of an experiment, in the order in which they were asked for.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Figures(Vec<Datum>);

impl Extend<Datum> for Figures {
    fn extend<T: IntoIterator<Item = Datum>>(&mut self, data: T) {
        self.0.extend(data);
    }
}

/// The name of a figure in a claim: `SYSTEM: WHAT`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Name {
    pub(crate) system: String,
    pub(crate) what: String,
}

impl Name {
    /// Reads `SYSTEM: WHAT`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (system, what) = text
            .rsplit_once(": ")
            .ok_or_else(|| format!("`{text}` must be written `SYSTEM: FIGURE`"))?;
        Ok(Self {
            system: system.into(),
            what: what.into(),
        })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.system, self.what)
    }
}

impl Figures {
    /// Every figure.
    pub fn iter(&self) -> impl Iterator<Item = &Datum> {
        self.0.iter()
    }

    /// The points of one curve, or the single figure under that name (its x is then none).
    pub fn of<'a>(&'a self, name: &'a Name) -> impl Iterator<Item = &'a Datum> {
        let is_it = |datum: &&Datum| datum.system == name.system && datum.what == name.what;
        self.0.iter().filter(is_it)
    }

    /// Names of what is measured, curves (`true`) or single figures, in order of appearance.
    pub fn names(&self, curves: bool) -> Vec<&str> {
        distinct(self.of_shape(curves).map(|datum| datum.what.as_str()))
    }

    /// Systems that have `what`, in order of appearance.
    pub fn systems(&self, what: &str) -> Vec<&str> {
        let of_it = self.0.iter().filter(|datum| datum.what == what);
        distinct(of_it.map(|datum| datum.system.as_str()))
    }

    /// Curves, or single figures.
    pub fn of_shape(&self, curves: bool) -> impl Iterator<Item = &Datum> {
        self.0
            .iter()
            .filter(move |datum| datum.x.is_some() == curves)
    }
}

/// Each once, in order of appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}
