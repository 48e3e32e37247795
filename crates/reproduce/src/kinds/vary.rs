//! The parameters other than load that can vary along an axis.

use crate::ReproduceError;
use crate::kinds::{ServerChanges, Setting};
use headway_workload::duration;
use serde::Deserialize;

/// One parameter that varies from point to point.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Vary {
    /// Name and unit of the axis.
    pub axis: String,
    /// Texts that replace `{}` in the policies.
    pub policy: Vec<String>,
    /// Numbers of workers.
    pub workers: Vec<usize>,
    /// Workloads.
    pub workload: Vec<String>,
    /// Places on the axis; by default the values, with durations in µs.
    pub x: Vec<f64>,
}

/// A point on the axis.
#[derive(Clone, Debug)]
pub(crate) struct VariedPoint {
    pub(crate) x: f64,
    pub(crate) inserted: String,
    pub(crate) on: ServerChanges,
}

impl Vary {
    /// All points; each changes one parameter of `on`.
    pub(crate) fn points(
        &self,
        on: &ServerChanges,
        setting: &Setting<'_>,
    ) -> Result<Vec<VariedPoint>, ReproduceError> {
        let point = |text: &str, on: ServerChanges| (text.to_owned(), on);
        let policies = self.policy.iter().map(|text| point(text, on.clone()));
        let workers = self.workers.iter().map(|&workers| {
            let on = ServerChanges {
                workers: Some(workers),
                ..on.clone()
            };
            point(&workers.to_string(), on)
        });
        let workloads = self.workload.iter().map(|name| {
            let on = ServerChanges {
                workload: Some(name.clone()),
                ..on.clone()
            };
            point(name, on)
        });
        let varied: Vec<(String, ServerChanges)> =
            policies.chain(workers).chain(workloads).collect();
        let given = !self.x.is_empty();
        if varied.is_empty() || given && self.x.len() != varied.len() {
            return Err(setting.fault("`vary` needs values, and as many `x`, if any"));
        }
        varied
            .into_iter()
            .enumerate()
            .map(|(index, (text, on)): (usize, (String, ServerChanges))| {
                let x = match self.x.get(index) {
                    Some(x) => *x,
                    None => number(&text)
                        .ok_or_else(|| setting.fault(format!("`{text}` needs an x")))?,
                };
                Ok(VariedPoint {
                    x,
                    inserted: text,
                    on,
                })
            })
            .collect()
    }
}

/// Parses a number, or a duration in µs.
fn number(text: &str) -> Option<f64> {
    text.parse()
        .ok()
        .or_else(|| duration::parse(text).ok().map(|ns| ns as f64 / 1e3))
}
