//! What is tried: policies and the grids of their parameters, a line each.

use headway_policy::spec::{Spec, SpecError};
use headway_policy::{Shape, systems};
use headway_workload::{Workload, duration};

/// A policy with the values of its parameters that are tried, every combination of them.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The policy's name.
    pub policy: &'static str,
    /// Its parameters with their values; `policy` alone where there are none.
    pub grid: &'static [(&'static str, Values)],
    /// Whether it does nothing with a single class that another does not.
    pub needs_classes: bool,
    /// Set in simulation only: steady state without a long start, say.
    pub simulated_with: &'static [(&'static str, &'static str)],
}

/// The values of a parameter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Values {
    /// These.
    These(&'static [&'static str]),
    /// Numbers of workers around what the shortest class needs.
    Workers,
    /// Multiples of the shortest class's mean service time, and the papers' 2, 5 and 10 µs.
    Quanta,
}
use Values::{Quanta, These, Workers};

const KNOWN: &[(&str, &str)] = &[("profile", "known")];

/// All that is tried, the simplest first: of two equal candidates the earlier is ranked before.
pub const FAMILIES: &[Family] = &[
    any("c-fcfs", &[]),
    any("d-fcfs", &[]),
    any("work-stealing", &[("steal", These(&["half", "one"]))]),
    any("jbsq", &[("k", These(&["2", "3", "4"]))]),
    typed("fixed-priority", &[]),
    typed("static-partition", &[]),
    typed("darc-static", &[("reserved", Workers)]),
    profiled("darc", &[("delta", These(&["1.5", "2", "3", "5"]))]),
    profiled("darc-stable", &[("delta", These(&["1.5", "2", "3", "5"]))]),
    any("shinjuku-sq", &[("q", Quanta)]),
    any("shinjuku-ci", &[("q", Quanta)]),
    // A dispatcher that works is one worker more: that comparison would not be fair.
    any(
        "concord",
        &[("dispatcher", These(&["dedicated"])), ("q", Quanta)],
    ),
    any("tiny-quanta", &[("q", Quanta)]),
    any("tardis", &[("n", These(&["1", "4"])), ("q", Quanta)]),
    typed("synergy", &[("factor", These(&["1", "2", "5", "10"]))]),
    // Nobody knows a request's own size beforehand; what its class takes on average one can learn.
    typed("sjf", &[("size", These(&["profile"]))]),
    typed(
        "srpt",
        &[("size", These(&["profile"])), ("cost", These(&["1us"]))],
    ),
    typed("edf", &[]),
    typed("drr", &[("size", These(&["profile"]))]),
    any("mlfq", &[("q", Quanta)]),
    typed("shinjuku-mq", &[("q", Quanta)]),
    // DARC that also interrupts: of the compositions nobody published.
    profiled(
        "compose",
        &[
            ("discipline", These(&["typed"])),
            ("placement", These(&["reserved"])),
            ("control", These(&["darc"])),
            ("preemption", These(&["quantum"])),
            ("q", Quanta),
            ("cost", These(&["1us"])),
        ],
    ),
];

const fn any(policy: &'static str, grid: &'static [(&'static str, Values)]) -> Family {
    Family {
        policy,
        grid,
        needs_classes: false,
        simulated_with: &[],
    }
}

const fn typed(policy: &'static str, grid: &'static [(&'static str, Values)]) -> Family {
    Family {
        needs_classes: true,
        ..any(policy, grid)
    }
}

const fn profiled(policy: &'static str, grid: &'static [(&'static str, Values)]) -> Family {
    Family {
        simulated_with: KNOWN,
        ..typed(policy, grid)
    }
}

/// A policy with its parameters, to be compared.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// As the server would be told.
    pub policy: Spec,
    /// As it is simulated.
    pub simulated: Spec,
}

/// Every candidate for a workload on so many workers.
///
/// # Errors
/// [`SpecError`] when a line of the table names what the policies do not have.
pub fn candidates(workload: &Workload, workers: usize) -> Result<Vec<Candidate>, SpecError> {
    let classes = workload.class_names().len();
    let mut all = Vec::new();
    for family in FAMILIES {
        if family.needs_classes && classes < 2 {
            continue;
        }
        for policy in family.specs(workload, workers) {
            systems::check(&policy, &Shape::new(workers))?;
            let mut simulated = policy.clone();
            simulated.params.extend(owned(family.simulated_with));
            systems::check(&simulated, &Shape::new(workers))?;
            all.push(Candidate { policy, simulated });
        }
    }
    Ok(all)
}

impl Family {
    /// Every combination of the values.
    fn specs(&self, workload: &Workload, workers: usize) -> Vec<Spec> {
        let mut specs = vec![Spec {
            name: self.policy.into(),
            params: Vec::new(),
        }];
        for (key, values) in self.grid {
            let values = values.of(workload, workers);
            let with = |spec: &Spec| {
                let spec = spec.clone();
                values.iter().map(move |value| {
                    let mut spec = spec.clone();
                    spec.params.push(((*key).into(), value.clone()));
                    spec
                })
            };
            specs = specs.iter().flat_map(with).collect();
        }
        specs
    }
}

impl Values {
    fn of(self, workload: &Workload, workers: usize) -> Vec<String> {
        match self {
            Self::These(values) => values.iter().map(|value| (*value).into()).collect(),
            Self::Workers => reserved(workload, workers)
                .into_iter()
                .map(|workers| workers.to_string())
                .collect(),
            Self::Quanta => quanta(workload).into_iter().map(duration::format).collect(),
        }
    }
}

/// One to four, and what the shortest class takes of all demand with one less and one more; fewer
/// than all workers. (None reserved is `fixed-priority`.)
fn reserved(workload: &Workload, workers: usize) -> Vec<usize> {
    let mix = workload.initial_mix();
    let shortest = mix
        .iter()
        .min_by(|a, b| a.mean_ns().total_cmp(&b.mean_ns()));
    let demand: f64 = mix.iter().map(|class| class.share * class.mean_ns()).sum();
    let part = shortest.map_or(0.0, |class| class.share * class.mean_ns() / demand);
    let needed = libm::round(part * workers as f64) as usize;
    let mut counts = vec![1, 2, 3, 4, needed.saturating_sub(1), needed, needed + 1];
    counts.retain(|count| (1..workers).contains(count));
    counts.sort_unstable();
    counts.dedup();
    counts
}

/// Ascending, at least half a microsecond: below that nothing can be interrupted.
fn quanta(workload: &Workload) -> Vec<u64> {
    const LEAST_NS: u64 = 500;
    let means = workload.initial_mix().iter().map(|class| class.mean_ns());
    let shortest_ns = means.fold(f64::INFINITY, f64::min) as u64;
    let mut quanta = vec![2_000, 5_000, 10_000];
    quanta.extend([2, 5].map(|times| (shortest_ns * times).max(LEAST_NS)));
    quanta.sort_unstable();
    quanta.dedup();
    quanta
}

fn owned(params: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    params
        .iter()
        .map(|(key, value)| ((*key).into(), (*value).into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(name: &str, workers: usize) -> Vec<String> {
        let workload = Workload::named(name).unwrap();
        let all = candidates(&workload, workers).unwrap();
        all.iter()
            .map(|candidate| candidate.policy.to_string())
            .collect()
    }

    #[test]
    fn every_line_of_the_table_names_a_policy_and_its_parameters() {
        for name in headway_workload::NAMES {
            for workers in [1, 2, 14, 256] {
                let specs = specs(name, workers);
                let mut distinct = specs.clone();
                distinct.sort();
                distinct.dedup();
                assert_eq!(distinct.len(), specs.len(), "{name}: {specs:?}");
            }
        }
    }

    #[test]
    fn one_class_needs_no_types() {
        let one = specs("exponential-1us", 8);
        assert!(
            one.contains(&"c-fcfs".into()) && !one.iter().any(|spec| spec.contains("darc")),
            "{one:?}"
        );
    }

    #[test]
    fn reservations_are_tried_around_what_the_shortest_class_needs() {
        // Shorts are 0.995 · 0.5 of 2.9975 µs: 16.6 %, 2.7 of 16 workers.
        let workload = Workload::named("extreme-bimodal").unwrap();
        assert_eq!(reserved(&workload, 16), [1, 2, 3, 4]);
        assert_eq!(reserved(&workload, 64), [1, 2, 3, 4, 10, 11, 12]);
        assert_eq!(reserved(&workload, 1), Vec::<usize>::new());
    }

    #[test]
    fn quanta_follow_the_shortest_class() {
        let workload = Workload::named("leveldb-synergy").unwrap();
        assert_eq!(quanta(&workload), [1_840, 2_000, 4_600, 5_000, 10_000]);
    }
}
