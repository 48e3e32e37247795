//! Which plans leave a group overloaded for ever, and the nearest one that does not.
//!
//! Algorithm 2 rounds: noise of a fraction of a percent in the profile can move a worker from a
//! long group to a shorter one, and on TPC-C at 85 % load the long one then starves without ever
//! moving the demand by the 10 % that would trigger a new reservation. This module is the repair
//! (ours, not the paper's).
//!
//! Groups are ascending; group `k` and all longer ones may only use the workers from position
//! `start_k` on. Let `A_j` be the load of group `j` in cores. Groups `k…` are stable when
//!
//! `utilisation_k = (Σ_{j ≥ k} A_j + stolen_k) / (W − start_k) < 1`,
//!
//! where `stolen_k` is what shorter groups take of those workers *while group k is backlogged*.
//! Shorter requests have priority there but take a worker only when one completes, so the less
//! the longer the long requests are. Take the groups `i … k−1` for any `i`: with `a` their load,
//! `r = start_k − start_i` the workers they have before the shared ones, mean service `s` for them
//! and `S` for the longer, the number of their
//! requests outside the shared workers is a birth–death process: rate `a` up, `min(n, r)` down,
//! and `c = s · [(W − r − stolen)/S + stolen/s]` more down when some wait (a shared worker that
//! completes takes the head). Then `stolen = min(c · P(n > r), a)`, solved by iteration; of all `i`
//! the one that steals most counts, for a group is held up by its own narrow share as well as by
//! all shorter groups together.
//!
//! At `start = 0` for all groups the plan is fixed priority, which is stable whenever anything
//! is; so a stable plan exists for every load below 1.

use crate::server::Group;

/// Load that a group brings while running, for [`utilisation`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct GroupLoad {
    /// Offered load in cores: arrival rate × mean service time.
    pub cores: f64,
    /// Mean service time, ns.
    pub mean_ns: f64,
}

/// Workers kept back, in units of the square root of their number: the square-root staffing rule
/// (Halfin and Whitt 1981). Few workers need relatively more room below saturation than many; the
/// margin also covers what the birth–death model leaves out.
const STAFFING: f64 = 0.08;

/// Utilisation up to which a group that may use so many workers counts as stable:
/// `1 − 0.08/√workers`.
#[must_use]
pub fn stable_below(workers: usize) -> f64 {
    1.0 - STAFFING / sqrt(workers as f64)
}

/// Load of group `k` and all longer ones over what they can get, `loads` and `groups` ascending
/// and of equal length. Infinite when they can get nothing.
#[must_use]
pub fn utilisation(groups: &[Group], loads: &[GroupLoad], workers: usize, k: usize) -> f64 {
    let start = groups[k].start.min(workers - 1);
    let longer = sum(&loads[k..]);
    let shared = (workers - start) as f64;
    let stolen = (0..k)
        .map(|j| {
            stolen(
                sum(&loads[j..k]),
                start.saturating_sub(groups[j].start),
                longer.mean_ns,
                shared,
            )
        })
        .fold(0.0, f64::max);
    (longer.cores + stolen) / shared
}

/// Whether some group is overloaded under the plan.
#[must_use]
pub fn overloads(groups: &[Group], loads: &[GroupLoad], workers: usize) -> bool {
    (1..groups.len()).any(|k| overloaded(groups, loads, workers, k, 0.0))
}

fn overloaded(
    groups: &[Group],
    loads: &[GroupLoad],
    workers: usize,
    k: usize,
    margin: f64,
) -> bool {
    let open = workers - groups[k].start.min(workers - 1);
    utilisation(groups, loads, workers, k) >= stable_below(open) - margin
}

/// Moves the start of overloaded groups down, one worker at a time and the longest group first,
/// until the utilisation of each is at least `margin` below [`stable_below`]. Leaves a plan that is
/// so already as it is.
pub fn settle(groups: &mut [Group], loads: &[GroupLoad], workers: usize, margin: f64) {
    for k in (1..groups.len()).rev() {
        while groups[k].start > 0 && overloaded(groups, loads, workers, k, margin) {
            widen(groups, k, workers);
        }
    }
}

/// Lets group `k` start one worker earlier; shorter groups that would start later start there too.
pub fn widen(groups: &mut [Group], k: usize, workers: usize) {
    let start = groups[k].start.min(workers).saturating_sub(1);
    groups[k].start = start;
    // A group that had found no worker free ends where it started.
    groups[k].end = groups[k].end.max(workers.min(start + 1));
    for shorter in &mut groups[..k] {
        shorter.start = shorter.start.min(start);
        shorter.end = shorter.end.min(start);
    }
}

fn sum(loads: &[GroupLoad]) -> GroupLoad {
    let cores: f64 = loads.iter().map(|load| load.cores).sum();
    let rate: f64 = loads
        .iter()
        .map(|load| load.cores / load.mean_ns.max(1.0))
        .sum();
    GroupLoad {
        cores,
        mean_ns: if rate > 0.0 { cores / rate } else { 1.0 },
    }
}

/// Cores that `shorter`, with `own` workers to itself, takes of `shared` backlogged workers whose
/// requests have mean `longer_ns`.
fn stolen(shorter: GroupLoad, own: usize, longer_ns: f64, shared: f64) -> f64 {
    const ITERATIONS: usize = 30;
    let offered = shorter.cores;
    if offered <= 0.0 {
        return 0.0;
    }
    let blocking = erlang_b(own, offered);
    let mut stolen = 0.0;
    for _ in 0..ITERATIONS {
        let capture = (shared - stolen) * shorter.mean_ns / longer_ns.max(1.0) + stolen;
        let next = (capture * queued(offered, own as f64 + capture, blocking)).min(shared);
        // What finds no room on its own workers in the long run must be taken from the shared.
        stolen = next.max(offered - own as f64).min(offered);
    }
    stolen
}

/// `P(n > r)` of a birth–death process that blocks with probability `blocking` at `r` servers
/// and drains at `drain` beyond: a geometric tail on Erlang's loss system.
fn queued(offered: f64, drain: f64, blocking: f64) -> f64 {
    let ratio = offered / drain;
    if ratio >= 1.0 {
        return 1.0;
    }
    let beyond = blocking * ratio / (1.0 - ratio);
    beyond / (1.0 + beyond)
}

/// Erlang's loss formula by its recursion `B(0) = 1`, `B(n) = aB(n−1) / (n + aB(n−1))`.
fn erlang_b(servers: usize, offered: f64) -> f64 {
    (1..=servers).fold(1.0, |b, n| offered * b / (n as f64 + offered * b))
}

/// By Newton's iteration from above: `core` has no square root.
fn sqrt(square: f64) -> f64 {
    (0..40).fold(square.max(1.0), |root, _| {
        f64::midpoint(root, square / root)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::{Order, Plan};
    use crate::{BitSet, ClassId};
    use alloc::vec::Vec;
    use proptest::prelude::*;

    #[test]
    fn erlang_b_matches_tables() {
        // Tables of the loss formula: 10 erlang on 10 and on 15 trunks.
        assert!((erlang_b(10, 10.0) - 0.2146).abs() < 1e-4);
        assert!((erlang_b(15, 10.0) - 0.0365).abs() < 1e-4);
    }

    #[test]
    fn fewer_workers_need_more_room() {
        assert!((stable_below(1) - 0.92).abs() < 1e-12);
        assert!((stable_below(16) - 0.98).abs() < 1e-12);
    }

    fn plan(starts: &[usize], workers: usize) -> Plan {
        let ranked = (0..=starts.len() as u16).map(ClassId).collect();
        let mut plan = Plan::open(Order::Rank, ranked, BitSet::range(0, workers));
        for (k, &start) in starts.iter().enumerate() {
            let end = starts.get(k + 1).copied().unwrap_or(workers);
            plan.groups.push(Group {
                classes: [k].into_iter().collect(),
                demand: 0.0,
                start,
                end,
            });
        }
        plan
    }

    fn tpcc(load: f64) -> [GroupLoad; 3] {
        let cores = 14.0 * load;
        [(0.1441, 5_725.0), (0.4615, 20_000.0), (0.3944, 94_000.0)].map(|(demand, mean_ns)| {
            GroupLoad {
                cores: demand * cores,
                mean_ns,
            }
        })
    }

    #[test]
    fn tells_the_papers_tpcc_plan_from_the_one_that_starves_stock_level() {
        let good = plan(&[0, 2, 8], 14);
        let bad = plan(&[0, 2, 9], 14);
        assert!(!overloads(&good.groups, &tpcc(0.85), 14));
        assert!(overloads(&bad.groups, &tpcc(0.85), 14));
    }

    #[test]
    fn settling_moves_one_worker_back() {
        let mut rounded = plan(&[0, 2, 9], 14);
        settle(&mut rounded.groups, &tpcc(0.85), 14, 0.0);
        assert_eq!(
            rounded.groups.iter().map(|g| g.start).collect::<Vec<_>>(),
            [0, 2, 8]
        );
    }

    proptest! {
        #[test]
        fn settling_leaves_no_overload_that_can_be_avoided(
            mut starts in prop::collection::vec(0usize..70, 2..6),
            workers in 2usize..65,
            weights in prop::collection::vec((0.01f64..1.0, 0.3f64..3.0), 6),
            load in 0.1f64..0.94,
        ) {
            starts[0] = 0;
            starts.sort_unstable();
            let mut plan = plan(&starts, workers);
            let total: f64 = weights[..starts.len()].iter().map(|w| w.0).sum();
            let mut mean_ns = 1e3;
            let loads: Vec<_> = weights[..starts.len()].iter().map(|&(weight, gap)| {
                mean_ns *= 2.0 + 10.0 * gap;
                GroupLoad { cores: workers as f64 * load * weight / total, mean_ns }
            }).collect();
            let before: Vec<_> = plan.groups.iter().map(|g| (g.start, g.end)).collect();
            let was_stable = !overloads(&plan.groups, &loads, workers);
            settle(&mut plan.groups, &loads, workers, 0.0);
            prop_assert!(!overloads(&plan.groups, &loads, workers));
            prop_assert!(plan.groups.windows(2).all(|pair| pair[0].start <= pair[1].start));
            if was_stable {
                let after: Vec<_> = plan.groups.iter().map(|g| (g.start, g.end)).collect();
                prop_assert_eq!(before, after);
            }
        }
    }
}
