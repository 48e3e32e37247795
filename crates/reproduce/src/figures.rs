//! The measured figures by system and name, alone or along an axis.

use serde::Serialize;
use std::fmt;

/// One figure.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Datum {
    /// The system's name in the file, behind `ID/` if the measurement has an id.
    pub system: String,
    /// The figure's name: `rps`, `overall.slowdown.p999` …
    pub what: String,
    /// Name and unit of the curve's axis; set after the measurement.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub axis: String,
    /// Place on the axis; none for a single figure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub x: Option<f64>,
    /// The value; not a number (`null` in JSON) if there is none, as for the tail of an overloaded run.
    pub value: f64,
    /// Of a percentile, the number of requests at or beyond it, on which it rests.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rests_on: Option<f64>,
}

/// All figures of an experiment, in the order of its measurements.
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
pub struct FigureName {
    pub(crate) system: String,
    pub(crate) what: String,
}

impl FigureName {
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

impl fmt::Display for FigureName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.system, self.what)
    }
}

impl Figures {
    /// Every figure.
    pub fn iter(&self) -> impl Iterator<Item = &Datum> {
        self.0.iter()
    }

    /// The points of one curve, or the single figure of that name, without an x.
    pub fn of<'a>(&'a self, name: &'a FigureName) -> impl Iterator<Item = &'a Datum> {
        self.0
            .iter()
            .filter(|datum: &&Datum| datum.system == name.system && datum.what == name.what)
    }

    /// The single figures.
    pub fn singles(&self) -> impl Iterator<Item = &Datum> {
        self.0.iter().filter(|datum| datum.x.is_none())
    }

    /// Curves of the same figure over the same axis, together: one chart shows each such family.
    pub fn families(&self) -> Vec<Vec<&Datum>> {
        let mut families: Vec<Vec<&Datum>> = Vec::new();
        for datum in self.0.iter().filter(|datum| datum.x.is_some()) {
            match families.iter_mut().find(|family: &&mut Vec<&Datum>| {
                (&family[0].what, &family[0].axis) == (&datum.what, &datum.axis)
            }) {
                Some(family) => family.push(datum),
                None => families.push(vec![datum]),
            }
        }
        families
    }
}

/// Each name once, in order of appearance.
pub(crate) fn distinct<'a>(names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let mut seen = Vec::new();
    for name in names {
        if !seen.contains(&name) {
            seen.push(name);
        }
    }
    seen
}
