//! The candidates: every policy with the [grids](headway_policy::server::systems::Grid) of its parameters.

use headway_policy::server::systems::{Grid, ServerSpec, Values};
use headway_policy::spec::{Params, SpecError};
use headway_policy::{Shape, server::systems};
use headway_workload::{Workload, duration};

/// Fewest workers per dispatcher: with fewer, one busy worker is too large a part of a dispatcher's capacity.
const WORKERS_PER_DISPATCHER: usize = 3;

/// A candidate: a policy with its parameters.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Candidate {
    /// The policy as a user passes it to the server.
    pub policy: ServerSpec,
    /// The policy as simulated.
    pub simulated: ServerSpec,
}

/// Every candidate for a workload on a server of this shape. Policies that cannot obey its resume mode are left out.
///
/// # Errors
/// [`SpecError`] when a grid names a parameter or value that its policy lacks.
pub fn candidates(workload: &Workload, shape: &Shape) -> Result<Vec<Candidate>, SpecError> {
    let mut field = Field::new(workload, shape);
    for known in systems::ALL {
        for grid in known.grids {
            for policy in specs(grid, known.by_default(), workload, shape.workers)? {
                match field.push(Some(grid), policy) {
                    Err(SpecError::Roams { .. }) => {}
                    pushed => pushed?,
                }
            }
        }
    }
    Ok(field.candidates)
}

/// The candidates of the given policies. Given parameters are fixed; the other parameters take the values of
/// the policy's grids. A policy without a grid is tried as given.
///
/// # Errors
/// [`SpecError`] when there is no such policy, parameter or value on such a server.
pub fn candidates_of(
    given: &[ServerSpec],
    workload: &Workload,
    shape: &Shape,
) -> Result<Vec<Candidate>, SpecError> {
    let mut field = Field::new(workload, shape);
    for spec in given {
        let own = spec.clone().by_own_name();
        let mut in_grid = false;
        for grid in own.policy().grids {
            for policy in specs(grid, own.clone(), workload, shape.workers)? {
                // The grid's other values may conflict with the given parameters.
                if policy.check(&field.shape).is_ok() {
                    in_grid = true;
                    field.push(Some(grid), policy)?;
                }
            }
        }
        if !in_grid {
            // This also reports an error in the given policy.
            field.push(None, own)?;
        }
    }
    Ok(field.candidates)
}

/// The set of candidates, without duplicates.
struct Field {
    classes: usize,
    shape: Shape,
    candidates: Vec<Candidate>,
    /// Their names with all parameters as used: stating a default value makes no second candidate.
    used: Vec<(&'static str, Params)>,
}

impl Field {
    fn new(workload: &Workload, shape: &Shape) -> Self {
        Self {
            classes: workload.class_names().len(),
            shape: shape.clone(),
            candidates: Vec::new(),
            used: Vec::new(),
        }
    }

    /// Adds a policy, unless it is present already or needs several classes and the workload has one.
    fn push(&mut self, grid: Option<&Grid>, policy: ServerSpec) -> Result<(), SpecError> {
        let used = (policy.name(), policy.check(&self.shape)?);
        if (grid.is_some_and(|grid| grid.needs_classes) && self.classes < 2)
            || self.used.contains(&used)
        {
            return Ok(());
        }
        let mut simulated = policy.clone();
        for (key, value) in grid.map_or(&[][..], |grid| grid.simulated_with) {
            if !policy.gives(key) {
                simulated = simulated.with_param(key, (*value).into())?;
            }
        }
        // A composition by hand may lack the parameters of the grid's simulation.
        if simulated != policy && simulated.check(&self.shape).is_err() {
            simulated = policy.clone();
        }
        self.used.push(used);
        self.candidates.push(Candidate { policy, simulated });
        Ok(())
    }
}

/// Every combination of the grid's values for the parameters that the user left open.
fn specs(
    grid: &Grid,
    given: ServerSpec,
    workload: &Workload,
    workers: usize,
) -> Result<Vec<ServerSpec>, SpecError> {
    let free = grid.values.iter().filter(|(key, _)| !given.gives(key));
    let free: Vec<_> = free.collect();
    let mut whole = given;
    if !grid.parts.iter().any(|(part, _)| whole.gives(part)) {
        for (key, value) in grid.parts {
            whole = whole.with_param(key, (*value).into())?;
        }
    }
    let mut specs = vec![whole];
    for (key, values) in free {
        let values = values_of(*values, workload, workers);
        specs = specs
            .iter()
            .flat_map(|spec: &ServerSpec| {
                let spec = spec.clone();
                values
                    .iter()
                    .map(move |value| spec.clone().with_param(key, value.clone()))
            })
            .collect::<Result<_, _>>()?;
    }
    Ok(specs)
}

fn values_of(values: Values, workload: &Workload, workers: usize) -> Vec<String> {
    match values {
        Values::These(values) => values.iter().map(|value| (*value).into()).collect(),
        Values::Workers => reserved(workload, workers)
            .into_iter()
            .map(|workers| workers.to_string())
            .collect(),
        Values::Quanta => quanta(workload).into_iter().map(duration::format).collect(),
        Values::Dispatchers => [2, 4, 8]
            .into_iter()
            .filter(|dispatchers| dispatchers * WORKERS_PER_DISPATCHER <= workers)
            .map(|dispatchers| dispatchers.to_string())
            .collect(),
    }
}

/// Numbers of reserved workers: one to four, and the shortest class's share of the demand with one less
/// and one more; always fewer than all workers. (`fixed-priority` reserves none.)
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

/// Quanta in ascending order, at least half a microsecond: no mechanism can interrupt sooner.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn specs(name: &str, workers: usize) -> Vec<String> {
        let workload = Workload::named(name).unwrap();
        let all = candidates(&workload, &Shape::new(workers)).unwrap();
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

    fn given(texts: &[&str], workload: &str, workers: usize) -> Result<Vec<String>, SpecError> {
        let specs: Vec<ServerSpec> = texts
            .iter()
            .map(|text| text.parse())
            .collect::<Result<_, _>>()?;
        let workload = Workload::named(workload).unwrap();
        let all = candidates_of(&specs, &workload, &Shape::new(workers))?;
        Ok(all.iter().map(|one| one.policy.to_string()).collect())
    }

    #[test]
    fn several_dispatchers_are_tried_where_each_has_workers_enough() {
        assert_eq!(
            [5, 6, 14, 24].map(|workers| {
                let specs = specs("high-bimodal", workers);
                ["dispatchers=2", "dispatchers=4", "dispatchers=8"]
                    .iter()
                    .filter(|count| specs.iter().any(|spec| spec.contains(**count)))
                    .count()
            }),
            [0, 1, 2, 3]
        );
    }

    #[test]
    fn what_is_given_is_fixed_and_the_rest_is_tried() {
        let concord = given(&["concord,dispatchers=3"], "high-bimodal", 14).unwrap();
        assert_eq!(concord.len(), 3, "{concord:?}");
        let fixed =
            |spec: &String| spec.starts_with("concord,dispatchers=3,dispatcher=dedicated,q=");
        assert!(concord.iter().all(fixed), "{concord:?}");
        // 2, 5 and 10 µs; 2 and 5 times 1 µs are among them.
        let one = given(&["shinjuku-sq,q=7us"], "high-bimodal", 14).unwrap();
        assert_eq!(one, ["shinjuku-sq,q=7us"]);
        let both = given(&["concord,q=2us"], "high-bimodal", 6).unwrap();
        assert_eq!(
            both,
            [
                "concord,q=2us,dispatcher=dedicated",
                "concord,q=2us,dispatcher=dedicated,dispatchers=2"
            ]
        );
    }

    #[test]
    fn a_policy_given_twice_is_one_candidate_and_one_outside_the_table_is_taken_as_it_is() {
        let specs = given(
            &[
                "persephone,delta=2",
                "darc,delta=2.0,window=50000",
                "wrr",
                "jbsq,k=2",
                "jbsq",
            ],
            "high-bimodal",
            14,
        );
        let expected = ["darc,delta=2", "wrr", "jbsq,k=2", "jbsq,k=3", "jbsq,k=4"];
        assert_eq!(specs.unwrap(), expected);
    }

    #[test]
    fn parts_of_a_composition_that_are_given_replace_those_of_the_table() {
        let all = given(&["compose,discipline=edf"], "high-bimodal", 14).unwrap();
        assert_eq!(all, ["compose,discipline=edf"]);
        let quanta = given(&["compose,cost=2us"], "high-bimodal", 14).unwrap();
        assert!(
            quanta.len() == 3
                && quanta
                    .iter()
                    .all(|spec: &String| spec.contains("control=darc,preemption=quantum,q=")),
            "{quanta:?}"
        );
    }

    #[test]
    fn what_is_known_in_simulation_only_yields_to_what_is_given() {
        let workload = Workload::named("tpcc").unwrap();
        let simulated = |text: &str| {
            let all = candidates_of(&[text.parse().unwrap()], &workload, &Shape::new(14)).unwrap();
            all[0].simulated.to_string()
        };
        assert_eq!(simulated("darc,delta=3"), "darc,delta=3,profile=known");
        let observed = "darc,delta=3,profile=observed";
        assert_eq!(simulated(observed), observed);
    }

    #[test]
    fn a_value_that_so_many_workers_cannot_have_is_named() {
        let error = given(&["concord,dispatchers=15"], "high-bimodal", 14).unwrap_err();
        let said = error.to_string();
        assert!(
            said.contains("dispatchers=15") && said.contains("1 to the number of workers"),
            "{said}"
        );
        assert!(given(&["darc,dleta=2"], "high-bimodal", 14).is_err());
        assert!(given(&["drac"], "high-bimodal", 14).is_err());
    }

    #[test]
    fn what_moves_requests_is_no_candidate_where_they_must_stay() {
        let workload = Workload::named("high-bimodal").unwrap();
        let mut shape = Shape::new(14);
        let names = |shape: &Shape| {
            let all = candidates(&workload, shape).unwrap();
            all.iter().map(|one| one.policy.name()).collect::<Vec<_>>()
        };
        assert!(names(&shape).contains(&"tardis"));
        shape.resume = headway_policy::Resume::OwnWorker;
        let staying = names(&shape);
        assert!(!staying.contains(&"tardis") && staying.contains(&"concord"));
        let given = candidates_of(&["tardis".parse().unwrap()], &workload, &shape);
        assert!(matches!(given, Err(SpecError::Roams { .. })));
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
