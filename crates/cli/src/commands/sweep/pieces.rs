//! A sweep split into pieces, and merged again.
//!
//! The points of a sweep are dealt to the pieces in turn, so that each gets its part of the high
//! loads, which take longest. Every point runs as it would in the whole sweep. Merging restores the
//! order, so the output equals the whole sweep's to the byte.

use crate::error::usage;
use anyhow::Result;
use headway_report::Run;
use headway_report::stats::ConfidenceInterval;
use headway_sim::{Experiment, Precision};
use headway_study::sweep::intervals;
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A policy at a load, with all its replications.
#[derive(Clone, PartialEq, Debug)]
pub(super) struct SweepPoint {
    pub(super) policy: String,
    pub(super) load: f64,
    pub(super) runs: Vec<Run>,
    /// Whether every replication meets the SLO, where there is one.
    pub(super) meets_slo: Option<bool>,
}

/// The index of a piece, counted from 1, and the number of pieces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct ShardNumber {
    index: usize,
    of: usize,
}

/// `2/5`.
pub(super) fn part(text: &str) -> Result<ShardNumber, String> {
    let numbers = text
        .split_once('/')
        .and_then(|(index, of)| Some((index.trim().parse().ok()?, of.trim().parse().ok()?)));
    match numbers {
        Some((index, of)) if 1 <= index && index <= of => Ok(ShardNumber { index, of }),
        _ => Err(format!(
            "'{text}' is not a piece: the second of five is 2/5"
        )),
    }
}

/// What `--format json` prints: a sweep, or a piece of one.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub(super) struct SweepPiece {
    /// Of all points, one after another.
    pub(super) runs: Vec<Run>,
    /// Whose they are.
    points: Vec<PointName>,
    /// The piece and its sweep, where this is a piece.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<Shard>,
    /// Whether it was interrupted before its end: points that were not done are missing.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) cut_off: bool,
}

/// A point, without its runs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
struct PointName {
    /// The policy as it was asked for.
    policy: String,
    load: f64,
    /// The number of the point's runs.
    replications: usize,
    /// Its figures with their intervals, where there are several runs, by their names in an SLO: `class.GET.latency.p99`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    intervals: BTreeMap<String, ConfidenceInterval>,
}

/// The identity of a piece and of its sweep.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct Shard {
    index: usize,
    of: usize,
    /// Points of the whole sweep.
    points: usize,
    /// The fingerprint of all inputs of the whole sweep.
    digest: String,
}

impl ShardNumber {
    /// The experiments of this piece.
    pub(super) fn of(self, all: &[Experiment]) -> Result<Vec<Experiment>> {
        let mine: Vec<Experiment> = all
            .iter()
            .skip(self.index - 1)
            .step_by(self.of)
            .cloned()
            .collect();
        if mine.is_empty() {
            Err(usage(
                "--shard",
                format!(
                    "a sweep of {} points has no piece {}",
                    all.len(),
                    self.index
                ),
            ))
        } else {
            Ok(mine)
        }
    }

    /// The fingerprint that pieces of one sweep share.
    pub(super) fn shard(self, all: &[Experiment], precision: Option<&Precision>) -> Shard {
        let each: Vec<_> = all.iter().map(|e| (&e.policy, e.offered)).collect();
        let whole = format!("{:?} {each:?} {precision:?}", all[0]);
        Shard {
            index: self.index,
            of: self.of,
            points: all.len(),
            digest: format!("{:016x}", fnv1a(whole.as_bytes())),
        }
    }
}

impl SweepPiece {
    pub(super) fn new(
        experiments: &[Experiment],
        runs: Vec<Vec<Run>>,
        shard: Option<Shard>,
    ) -> Self {
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
                })
                .collect(),
            runs: runs.into_iter().flatten().collect(),
            shard,
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
                }
            })
            .collect()
    }

    /// Whether the names fit the runs.
    fn is_sound(&self) -> bool {
        let of_points: usize = self.points.iter().map(|name| name.replications).sum();
        !self.points.is_empty()
            && of_points == self.runs.len()
            && self.points.iter().all(|name| name.replications > 0)
    }
}

/// The sweep that the files are the pieces of.
pub(super) fn merge(files: &[PathBuf]) -> Result<SweepPiece> {
    let mut pieces = files
        .iter()
        .map(|path| Ok((path.as_path(), read(path)?)))
        .collect::<Result<Vec<_>>>()?;
    pieces.sort_by_key(|(_, (shard, _))| shard.index);
    let first = pieces[0].1.0.clone();
    for (path, (shard, piece)) in &pieces {
        let of_this_sweep = Shard {
            index: shard.index,
            ..first.clone()
        };
        if *shard != of_this_sweep {
            let why = format!("is not of the same sweep as {}", pieces[0].0.display());
            return Err(refused(path, &why));
        }
        let expected = (shard.index - 1..shard.points).step_by(shard.of).count();
        if piece.points.len() != expected {
            let found = piece.points.len();
            return Err(refused(
                path,
                &format!("has {found} points, not {expected}"),
            ));
        }
    }
    if let Some(twice) = pieces.windows(2).find(|two| two[0].1.0 == two[1].1.0) {
        let why = format!("is the same piece as {}", twice[0].0.display());
        return Err(refused(twice[1].0, &why));
    }
    let present: Vec<usize> = pieces.iter().map(|(_, (shard, _))| shard.index).collect();
    let needed = 1..=first.of.min(first.points);
    if let Some(missing) = needed.clone().find(|index| !present.contains(index)) {
        let why = format!("piece {missing}/{} is missing", first.of);
        return Err(usage("--merge", why));
    }
    Ok(interleaved(
        pieces.iter().map(|(_, (_, piece))| piece),
        &first,
    ))
}

/// Point by point, a piece after the other.
fn interleaved<'a>(pieces: impl Iterator<Item = &'a SweepPiece>, whole: &Shard) -> SweepPiece {
    let mut pieces: Vec<_> = pieces
        .map(|piece| piece.points.iter().zip(piece.points()))
        .collect();
    let mut merged = SweepPiece {
        runs: Vec::new(),
        points: Vec::new(),
        shard: None,
        cut_off: false,
    };
    for index in 0..whole.points {
        let next = pieces[index % whole.of].next();
        let (name, point) = next.expect("checked: every piece has its points");
        merged.points.push(name.clone());
        merged.runs.extend(point.runs);
    }
    merged
}

fn read(path: &Path) -> Result<(Shard, SweepPiece)> {
    let text =
        read_text(path, SETTINGS_BYTES_MAX).map_err(|error| refused(path, &error.to_string()))?;
    let mut piece: SweepPiece =
        serde_json::from_str(&text).map_err(|error| refused(path, &error.to_string()))?;
    let shard = piece.shard.take();
    let shard = shard.ok_or_else(|| refused(path, "is a whole sweep, not a piece"))?;
    if piece.cut_off {
        return Err(refused(
            path,
            "was interrupted before its end: run this piece again",
        ));
    }
    let in_range = (1..=shard.of).contains(&shard.index) && shard.points >= shard.index;
    if piece.is_sound() && in_range {
        Ok((shard, piece))
    } else {
        Err(refused(path, "its points do not fit its runs"))
    }
}

fn refused(path: &Path, why: &str) -> anyhow::Error {
    usage("--merge", format!("{}: {why}", path.display()))
}

/// FNV-1a, 64 bits: detects mistakes, not adversaries.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
