//! Which points of a sweep meet an SLO, and what other seeds say of those beside the edge.

use super::points::SweepPoint;
use anyhow::Result;
use headway_report::{Run, Slo, SloSeeds};
use headway_sim::{Experiment, in_parallel};

/// Judges each point by its own runs.
pub(super) fn by_own_runs(points: &mut [SweepPoint], slo: &Slo) -> Result<()> {
    for point in points {
        let mut met = 0;
        for run in &point.runs {
            met += u64::from(slo.evaluate(run)?.is_met());
        }
        let runs = point.runs.len() as u64;
        point.meets_slo = Some(met == runs);
        point.seeds = (runs > 1).then_some(SloSeeds { runs, met });
    }
    Ok(())
}

/// Asks runs of other seeds about points of a single run, one experiment each: those beside the edge between loads that meet the SLO and loads that miss it.
/// Where seeds disagree, it asks about the neighbours too: tails grow with load, so a point beyond points that agree needs no question.
pub(super) fn by_other_seeds(
    points: &mut [SweepPoint],
    experiments: &[Experiment],
    slo: &Slo,
    threads: usize,
) -> Result<()> {
    let mut asked = vec![false; points.len()];
    let curves = curves(points);
    let mut next: Vec<usize> = curves
        .iter()
        .flat_map(|curve| edge(points, curve))
        .collect();
    while !next.is_empty() {
        ask(&next, points, experiments, slo, threads)?;
        next.iter().for_each(|&point| asked[point] = true);
        next = curves
            .iter()
            .flat_map(|curve| beside_doubt(points, curve))
            .filter(|&point| !asked[point])
            .collect();
        next.dedup();
    }
    Ok(())
}

/// The points of each policy, by load.
fn curves(points: &[SweepPoint]) -> Vec<Vec<usize>> {
    let mut starts: Vec<usize> = (0..points.len())
        .filter(|&at| at == 0 || points[at - 1].policy != points[at].policy)
        .collect();
    starts.push(points.len());
    starts
        .windows(2)
        .map(|ends: &[usize]| {
            let mut curve: Vec<usize> = (ends[0]..ends[1]).collect();
            curve.sort_by(|&a, &b| points[a].load.total_cmp(&points[b].load));
            curve
        })
        .collect()
}

/// The points on either side of each change of the verdict. Below the curve an SLO is met, above it is missed.
fn edge(points: &[SweepPoint], curve: &[usize]) -> Vec<usize> {
    let met = |at: usize| points[curve[at]].meets_slo == Some(true);
    let last = curve.len() - 1;
    (0..=last)
        .filter(|&at| {
            let changes_below = met(at) != (at == 0 || met(at - 1));
            let changes_above = met(at) != (at < last && met(at + 1));
            changes_below || changes_above
        })
        .map(|at| curve[at])
        .collect()
}

/// The neighbours of points whose seeds disagree.
fn beside_doubt(points: &[SweepPoint], curve: &[usize]) -> Vec<usize> {
    let doubted = |at: usize| {
        let point = curve.get(at).map(|&point| &points[point]);
        point.is_some_and(|point| point.seeds.is_some_and(|seeds| !seeds.agree()))
    };
    (0..curve.len())
        .filter(|&at| doubted(at + 1) || (at > 0 && doubted(at - 1)))
        .map(|at| curve[at])
        .collect()
}

fn ask(
    which: &[usize],
    points: &mut [SweepPoint],
    experiments: &[Experiment],
    slo: &Slo,
    threads: usize,
) -> Result<()> {
    let others: Vec<Experiment> = which
        .iter()
        .flat_map(|&point| experiments[point].other_seeds())
        .collect();
    let outcomes = in_parallel(&others, threads, Experiment::run, |_, _| {});
    let runs = outcomes.into_iter().map(|outcome| Ok(outcome?.run));
    let runs: Vec<Run> = runs.collect::<Result<_>>()?;
    let each = runs.len() / which.len();
    for (&point, others) in which.iter().zip(runs.chunks(each)) {
        let point = &mut points[point];
        point.seeds = slo.by_seeds(point.runs.iter().chain(others))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::Workload;

    /// Runs of 3 000 requests on four workers: near 0.9 it is chance which of them meets the SLO.
    fn judged(loads: &[f64]) -> Vec<SweepPoint> {
        let workload = Workload::named("fixed-1us").unwrap();
        let experiment = Experiment::new(workload, "c-fcfs".parse().unwrap())
            .workers(4)
            .requests(3_000);
        let experiments: Vec<Experiment> = loads
            .iter()
            .map(|&load| experiment.clone().load(load))
            .collect();
        let mut points: Vec<SweepPoint> = experiments
            .iter()
            .map(|experiment: &Experiment| SweepPoint {
                policy: "c-fcfs".into(),
                load: experiment.offered_load(),
                runs: vec![experiment.run().unwrap().run],
                meets_slo: None,
                seeds: None,
            })
            .collect();
        let slo = "overall.slowdown.p99<=10".parse().unwrap();
        by_own_runs(&mut points, &slo).unwrap();
        by_other_seeds(&mut points, &experiments, &slo, 2).unwrap();
        points
    }

    #[test]
    fn other_seeds_are_asked_beside_the_edge_until_they_agree() {
        let loads: Vec<f64> = (40..100)
            .map(|percent| f64::from(percent) / 100.0)
            .collect();
        let points = judged(&loads);
        let asked = points.iter().filter_map(|point| point.seeds);
        let asked: Vec<SloSeeds> = asked.collect();
        assert!(asked.iter().any(|seeds| !seeds.agree()), "{asked:?}");
        // Far below and far above the edge nobody is asked.
        assert!(asked.len() < points.len() / 2, "{}", asked.len());
        let first = points.iter().position(|point| point.seeds.is_some());
        let last = points.iter().rposition(|point| point.seeds.is_some());
        let (first, last) = (&points[first.unwrap()], &points[last.unwrap()]);
        assert_eq!(first.seeds, Some(SloSeeds { runs: 4, met: 4 }));
        assert!(last.load > 0.98 || last.seeds == Some(SloSeeds { runs: 4, met: 0 }));
    }

    #[test]
    fn a_curve_without_an_edge_is_asked_at_its_end() {
        let asked = |loads: &[f64]| -> Vec<Option<u64>> {
            let points = judged(loads);
            let met = |point: &SweepPoint| point.seeds.map(|seeds| seeds.met);
            points.iter().map(met).collect()
        };
        assert_eq!(asked(&[0.3, 0.1, 0.2]), [Some(4), None, None]);
        assert_eq!(asked(&[1.3, 1.2]), [None, Some(0)]);
    }
}
