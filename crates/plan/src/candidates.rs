//! What is tried: policies and the grids of their parameters, a line each.

use headway_policy::spec::{Params, Spec, SpecError, Value};
use headway_policy::{Shape, systems};
use headway_workload::{Workload, duration};

/// A policy with the values of its parameters that are tried, every combination of them.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The policy's name.
    pub policy: &'static str,
    /// Its parameters with their values; `policy` alone where there are none.
    pub grid: &'static [(&'static str, Values)],
    /// The parts of a composition: taken together, or not at all.
    pub parts: &'static [(&'static str, &'static str)],
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
    /// Two, four, eight dispatchers, as far as each has three workers at least.
    Dispatchers,
}
use Values::{Dispatchers, Quanta, These, Workers};

/// With fewer, one busy worker is too large a part of what a dispatcher has.
const WORKERS_PER_DISPATCHER: usize = 3;

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
    // Concord § 6: where one dispatcher is the bottleneck, several with workers of their own.
    any(
        "concord",
        &[
            ("dispatcher", These(&["dedicated"])),
            ("dispatchers", Dispatchers),
            ("q", Quanta),
        ],
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
    Family {
        parts: &[
            ("discipline", "typed"),
            ("placement", "reserved"),
            ("control", "darc"),
            ("preemption", "quantum"),
        ],
        ..profiled("compose", &[("q", Quanta), ("cost", These(&["1us"]))])
    },
];

const fn any(policy: &'static str, grid: &'static [(&'static str, Values)]) -> Family {
    Family {
        policy,
        grid,
        parts: &[],
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

/// Every candidate for a workload on a server of this shape: what cannot keep to its resume mode is none.
///
/// # Errors
/// [`SpecError`] when a line of the table names what the policies do not have.
pub fn candidates(workload: &Workload, shape: &Shape) -> Result<Vec<Candidate>, SpecError> {
    let mut field = Field::new(workload, shape);
    for family in FAMILIES {
        for policy in family.specs(&family.bare(), workload, shape.workers) {
            match field.push(family, policy) {
                Err(SpecError::Roams { .. }) => {}
                pushed => pushed?,
            }
        }
    }
    Ok(field.candidates)
}

/// The candidates where policies are given: what one says of its parameters is fixed, the others are
/// tried as in the table. A policy that the table does not have is tried as given.
///
/// # Errors
/// [`SpecError`] when there is no such policy, parameter or value on such a server.
pub fn candidates_of(
    given: &[Spec],
    workload: &Workload,
    shape: &Shape,
) -> Result<Vec<Candidate>, SpecError> {
    let mut field = Field::new(workload, shape);
    for spec in given {
        let own = Spec {
            name: systems::find(&spec.name).unwrap_or(&spec.name).into(),
            params: spec.params.clone(),
        };
        let mut in_table = false;
        for family in FAMILIES.iter().filter(|family| family.policy == own.name) {
            for policy in family.specs(&own, workload, shape.workers) {
                // The table's other values need not go with what is given.
                if systems::check(&policy, &field.shape).is_ok() {
                    in_table = true;
                    field.push(family, policy)?;
                }
            }
        }
        if !in_table {
            // Which also says what is wrong with it.
            field.push(&any("", &[]), own)?;
        }
    }
    Ok(field.candidates)
}

/// Candidates, each once.
struct Field {
    classes: usize,
    shape: Shape,
    candidates: Vec<Candidate>,
    /// Their names with all parameters as used: a default that is given makes no other candidate.
    used: Vec<(String, Params)>,
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

    /// Adds a policy, unless it is there or the workload has nothing for it to tell apart.
    fn push(&mut self, family: &Family, policy: Spec) -> Result<(), SpecError> {
        let used = (policy.name.clone(), systems::check(&policy, &self.shape)?);
        if (family.needs_classes && self.classes < 2) || self.used.contains(&used) {
            return Ok(());
        }
        let mut simulated = policy.clone();
        let set = family.simulated_with.iter();
        let free = set.filter(|(key, _)| !gives(&policy, key));
        simulated
            .params
            .extend(free.map(|(key, value)| ((*key).into(), (*value).into())));
        // A composition given by hand may have no profile to know.
        if simulated != policy && systems::check(&simulated, &self.shape).is_err() {
            simulated = policy.clone();
        }
        self.used.push(used);
        self.candidates.push(Candidate { policy, simulated });
        Ok(())
    }
}

/// Dispatchers of a policy as used that run requests themselves, each as good as one more worker.
pub(crate) fn working_dispatchers(used: &Params) -> usize {
    match word(used, "dispatcher") {
        Some("works") => dispatchers(used),
        _ => 0,
    }
}

/// Dispatchers of a policy as used, where it may have several.
pub(crate) fn dispatchers(used: &Params) -> usize {
    let count = used.iter().find(|(key, _)| *key == "dispatchers");
    match count {
        Some((_, Value::Number(count))) => *count as usize,
        _ => 1,
    }
}

fn word(used: &Params, key: &str) -> Option<&'static str> {
    used.iter().find_map(|(used, value)| match value {
        Value::Word(word) if *used == key => Some(*word),
        _ => None,
    })
}

fn gives(spec: &Spec, key: &str) -> bool {
    spec.params.iter().any(|(given, _)| given == key)
}

impl Family {
    fn bare(&self) -> Spec {
        Spec {
            name: self.policy.into(),
            params: Vec::new(),
        }
    }

    /// Every combination of the values that are not given.
    fn specs(&self, given: &Spec, workload: &Workload, workers: usize) -> Vec<Spec> {
        let mut whole = given.clone();
        if !self.parts.iter().any(|(part, _)| gives(given, part)) {
            let parts = self.parts.iter();
            whole
                .params
                .extend(parts.map(|(key, value)| ((*key).into(), (*value).into())));
        }
        let mut specs = vec![whole];
        for (key, values) in self.grid.iter().filter(|(key, _)| !gives(given, key)) {
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
            Self::Dispatchers => [2, 4, 8]
                .into_iter()
                .filter(|dispatchers| dispatchers * WORKERS_PER_DISPATCHER <= workers)
                .map(|dispatchers| dispatchers.to_string())
                .collect(),
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
        let specs: Vec<Spec> = texts.iter().map(|text| text.parse().unwrap()).collect();
        let workload = Workload::named(workload).unwrap();
        let all = candidates_of(&specs, &workload, &Shape::new(workers))?;
        Ok(all.iter().map(|one| one.policy.to_string()).collect())
    }

    #[test]
    fn several_dispatchers_are_tried_where_each_has_workers_enough() {
        let dispatchers = |workers| {
            let specs = specs("high-bimodal", workers);
            let of = |count: &&str| specs.iter().any(|spec| spec.contains(*count));
            ["dispatchers=2", "dispatchers=4", "dispatchers=8"]
                .iter()
                .filter(|count| of(count))
                .count()
        };
        assert_eq!([5, 6, 14, 24].map(dispatchers), [0, 1, 2, 3]);
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
        let whole = |spec: &String| spec.contains("control=darc,preemption=quantum,q=");
        assert!(quanta.len() == 3 && quanta.iter().all(whole), "{quanta:?}");
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
            all.iter()
                .map(|one| one.policy.name.clone())
                .collect::<Vec<_>>()
        };
        assert!(names(&shape).contains(&"tardis".into()));
        shape.resume = headway_policy::Resume::OwnWorker;
        let staying = names(&shape);
        assert!(!staying.contains(&"tardis".into()) && staying.contains(&"concord".into()));
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
