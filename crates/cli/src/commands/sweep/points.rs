//! The points of a sweep, with their replications and intervals.

use headway_report::stats::ConfidenceInterval;
use headway_report::{Run, SloSeeds};
use headway_sim::Experiment;
use headway_study::sweep::intervals;
use serde::Serialize;
use std::collections::BTreeMap;

/// A policy at a load, with all its replications.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SweepPoint {
    pub(super) policy: String,
    pub(super) load: f64,
    pub(super) runs: Vec<Run>,
    /// Whether every replication meets the SLO, where there is one.
    pub(super) meets_slo: Option<bool>,
    /// How many runs of different seeds meet it: the replications, or where there is one, that and runs that nobody sees.
    pub(super) seeds: Option<SloSeeds>,
}

/// What `--format json` prints: a sweep.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub(super) struct SweptPoints {
    /// Of all points, one after another.
    pub(super) runs: Vec<Run>,
    /// Whose they are.
    points: Vec<PointName>,
    /// Whether it was interrupted before its end: points that were not done are missing.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut_off: bool,
}

/// A point, without its runs.
#[derive(Clone, PartialEq, Debug, Serialize)]
struct PointName {
    /// The policy as it was asked for.
    policy: String,
    load: f64,
    /// The number of the point's runs.
    replications: usize,
    /// Its figures with their intervals, where there are several runs, by their names in an SLO: `class.GET.latency.p99`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    intervals: BTreeMap<String, ConfidenceInterval>,
    /// How many runs of different seeds meet the SLO, where there is one and several were asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    slo_seeds: Option<SloSeeds>,
}

impl SweptPoints {
    pub(super) fn new(experiments: &[Experiment], runs: Vec<Vec<Run>>) -> Self {
        Self {
            cut_off: experiments.iter().any(Experiment::is_cut_off),
            points: experiments
                .iter()
                .zip(&runs)
                .filter(|(_, runs)| !runs.is_empty())
                .map(|(experiment, runs): (&Experiment, &Vec<Run>)| PointName {
                    policy: experiment.policy.to_string(),
                    load: runs[0].meta.load,
                    replications: runs.len(),
                    intervals: intervals(runs),
                    slo_seeds: None,
                })
                .collect(),
            runs: runs.into_iter().flatten().collect(),
        }
    }

    /// Each point with its runs.
    pub(super) fn points(&self) -> Vec<SweepPoint> {
        let mut rest = &self.runs[..];
        self.points
            .iter()
            .map(|name: &PointName| {
                let (runs, others) = rest.split_at(name.replications);
                rest = others;
                SweepPoint {
                    policy: name.policy.clone(),
                    load: name.load,
                    runs: runs.to_vec(),
                    meets_slo: None,
                    seeds: None,
                }
            })
            .collect()
    }

    /// Takes over what the seeds say of each point.
    pub(super) fn note_seeds(&mut self, points: &[SweepPoint]) {
        for (name, point) in self.points.iter_mut().zip(points) {
            name.slo_seeds = point.seeds;
        }
    }
}
