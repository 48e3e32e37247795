//! A simulated system, but for its workload, policy and load.

use crate::{Mistake, StudyError, parse, read_costs};
use headway_policy::server::systems::ServerSpec;
use headway_policy::{MAX_WORKERS, PolicySpec, Resume, Shape};
use headway_sim::{Classification, CoreChange, Costs, Experiment, Length, Offered, SystemCores};
use headway_workload::{Arrivals, Workload};
use std::ops::Range;
use std::path::PathBuf;

/// A simulated system, but for its workload, policy and load. The default is the papers' testbed: one ideal server of 14 workers, seed 1.
#[derive(Clone, PartialEq, Debug)]
pub struct SystemSetup {
    /// Workers of a server; with a host's policy, the cores that the host grants.
    pub workers: usize,
    /// Cores of a server instead: a policy's workers are those that its dispatchers and timers leave, and load counts all of them.
    pub cores: Option<usize>,
    /// Servers behind a switch.
    pub servers: usize,
    /// Racks behind a core switch.
    pub racks: usize,
    /// Number of arrivals; not beside a duration.
    pub requests: Option<u64>,
    /// Length of the run in virtual time, ns.
    pub duration_ns: Option<u64>,
    /// Seed of all random draws.
    pub seed: u64,
    /// A file of `headway calibrate`; none is the ideal system.
    pub costs: Option<PathBuf>,
    /// Serial work of the dispatcher per request, ns.
    pub dispatch_ns: Option<u64>,
    /// Added to every latency, ns.
    pub network_ns: u64,
    /// Capacity of each queue; requests beyond it are shed.
    pub queue_limit: Option<u64>,
    /// Requests that may have begun, or wait where the policy knows of them, as in a pool.
    pub begun_at_most: Option<u64>,
    /// Where an interrupted request resumes.
    pub resume: Resume,
    /// The class that the server's classifier assigns to a request.
    pub classifier: Classification,
    /// Fraction of requests that the classifier does not recognise.
    pub unknown_share: f64,
    /// Workers that come and go.
    pub core_changes: Vec<CoreChange>,
}

impl Default for SystemSetup {
    fn default() -> Self {
        Self {
            workers: 14,
            cores: None,
            servers: 1,
            racks: 1,
            requests: None,
            duration_ns: None,
            seed: 1,
            costs: None,
            dispatch_ns: None,
            network_ns: 0,
            queue_limit: None,
            begun_at_most: None,
            resume: Resume::Anywhere,
            classifier: Classification::Exact,
            unknown_share: 0.0,
            core_changes: Vec::new(),
        }
    }
}

impl SystemSetup {
    /// The names that [`set`](Self::set) knows: the command's flags.
    pub const NAMES: [&str; 16] = [
        "workers",
        "cores",
        "servers",
        "racks",
        "requests",
        "duration",
        "seed",
        "costs",
        "dispatch-cost",
        "network",
        "queue-limit",
        "begun-at-most",
        "resume",
        "classifier",
        "unknown",
        "core-change",
    ];

    /// Sets what the command's flag of this name sets, of the same text.
    ///
    /// # Errors
    /// There is no such name, or the text is no value of it.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Mistake> {
        let wrong = |error: String| Mistake::at(name, error);
        match name {
            "workers" => self.workers = parse::workers(text).map_err(wrong)?,
            "cores" => self.cores = Some(parse::workers(text).map_err(wrong)?),
            "servers" => self.servers = parse::servers(text).map_err(wrong)?,
            "racks" => self.racks = whole(text).map_err(wrong)?,
            "requests" => self.requests = Some(parse::count(text).map_err(wrong)?),
            "duration" => self.duration_ns = Some(parse::run_length(text).map_err(wrong)?),
            "seed" => self.seed = whole(text).map_err(wrong)?,
            "costs" => self.costs = Some(text.into()),
            "dispatch-cost" => self.dispatch_ns = Some(parse::cost(text).map_err(wrong)?),
            "network" => self.network_ns = parse::cost(text).map_err(wrong)?,
            "queue-limit" => self.queue_limit = Some(parse::count(text).map_err(wrong)?),
            "begun-at-most" => self.begun_at_most = Some(parse::count(text).map_err(wrong)?),
            "resume" => self.resume = parse::resume(text).map_err(wrong)?,
            "classifier" => self.classifier = parse::classifier(text).map_err(wrong)?,
            "unknown" => self.unknown_share = parse::fraction(text).map_err(wrong)?,
            "core-change" => self
                .core_changes
                .push(parse::core_change(text).map_err(wrong)?),
            _ => {
                let hint = headway_words::hint(name, &Self::NAMES);
                return Err(Mistake::at(name, format!("there is no such setting{hint}")));
            }
        }
        if self.requests.is_some() && self.duration_ns.is_some() {
            return Err(Mistake::at(
                "duration",
                "give a number of requests or a duration, not both",
            ));
        }
        Ok(())
    }

    /// The number of cores over which a load counts, of all servers: those given, or the workers.
    #[must_use]
    pub fn load_cores(&self) -> usize {
        self.servers * self.cores.unwrap_or(self.workers)
    }

    /// The experiment, checked. Where no length is given it lasts for a whole trace, else for `default_requests` arrivals.
    ///
    /// # Errors
    /// Something in it is wrong.
    pub fn experiment(
        &self,
        workload: Workload,
        policy: PolicySpec,
        offered: Offered,
        default_requests: u64,
    ) -> Result<Experiment, StudyError> {
        let workers = match self.cores {
            None => self.workers,
            Some(cores) => workers_of(&policy, cores)?,
        };
        let length = self.length_of(&workload, default_requests);
        let mut experiment = Experiment::new(workload, policy)
            .servers(self.servers)
            .racks(self.racks)
            .workers(workers)
            .offered(offered)
            .seed(self.seed);
        experiment.cores = self.cores;
        experiment.length = length;
        self.apply_costs(&mut experiment)?;
        self.apply_circumstances(&mut experiment)?;
        experiment.check()?;
        Ok(experiment)
    }

    /// The length of a run: where it is not given the whole of a trace, else `default_requests` arrivals.
    #[must_use]
    pub fn length_of(&self, workload: &Workload, default_requests: u64) -> Length {
        self.length(match &workload.arrivals {
            Arrivals::Trace(trace) => trace.records().len() as u64,
            _ => default_requests,
        })
    }

    /// The length of a run; `default_requests` arrivals where none is given.
    #[must_use]
    pub fn length(&self, default_requests: u64) -> Length {
        match (self.requests, self.duration_ns) {
            (_, Some(ns)) => Length::Duration(ns),
            (requests, None) => Length::Requests(requests.unwrap_or(default_requests)),
        }
    }

    fn apply_costs(&self, experiment: &mut Experiment) -> Result<(), Mistake> {
        if experiment.policy == PolicySpec::Fluid {
            self.refuse_all_costs_but_network(
                "'ps' is an ideal that shares the workers among all requests at once: it has no dispatcher, queues or interruptions",
            )?;
        }
        if let Some(path) = &self.costs {
            let measured = read_costs(path).map_err(|error| Mistake::at("costs", error))?;
            experiment.costs = measured.of_policy(&experiment.policy);
        }
        if let Some(dispatch_ns) = self.dispatch_ns {
            experiment.costs.dispatch_ns = dispatch_ns;
        }
        experiment.network_ns = self.network_ns;
        experiment.queue_limit = self.queue_limit.map_or(usize::MAX, |limit| limit as usize);
        experiment.begun_at_most = self.begun_at_most.map(|limit| limit as usize);
        experiment.resume = self.resume;
        Ok(())
    }

    fn apply_circumstances(&self, experiment: &mut Experiment) -> Result<(), Mistake> {
        if experiment.policy == PolicySpec::Fluid {
            self.refuse_circumstances(
                "'ps' treats all requests alike, whatever they are taken for",
                false,
            )?;
        }
        experiment.classifier = self.classifier;
        experiment.unknown_share = self.unknown_share;
        experiment.core_changes.clone_from(&self.core_changes);
        experiment.core_changes.sort_by_key(|change| change.at_ns);
        Ok(())
    }

    /// Refuses every cost that the simulated system ignores, and says why.
    ///
    /// # Errors
    /// One of them is given.
    pub fn refuse_all_costs_but_network(&self, why: &str) -> Result<(), Mistake> {
        refuse_given(
            &[
                ("costs", self.costs.is_some()),
                ("dispatch-cost", self.dispatch_ns.is_some()),
                ("queue-limit", self.queue_limit.is_some()),
                ("begun-at-most", self.begun_at_most.is_some()),
                ("resume", self.resume != Resume::Anywhere),
            ],
            why,
        )
    }

    /// Refuses a classifier and, where `core_changes_too`, workers that come and go; says why.
    ///
    /// # Errors
    /// One of them is given.
    pub fn refuse_circumstances(&self, why: &str, core_changes_too: bool) -> Result<(), Mistake> {
        let changes = core_changes_too && !self.core_changes.is_empty();
        refuse_given(
            &[
                ("classifier", self.classifier != Classification::Exact),
                ("unknown", self.unknown_share > 0.0),
                ("core-change", changes),
            ],
            why,
        )
    }

    /// The interrupt costs that the experiment's policy takes from its paper, because the file of costs lacks them.
    #[must_use]
    pub fn costs_left(&self, experiment: &Experiment) -> Option<String> {
        let path = self.costs.as_ref()?;
        let PolicySpec::Server(policy) = &experiment.policy else {
            return None;
        };
        let left = left_to(policy, &experiment.costs)?;
        Some(format!("{}: {left}", path.display()))
    }
}

/// The part of a run that is shown unless another is asked for: some 500 requests after the warm-up, ns.
#[must_use]
pub fn shown_window(experiment: &Experiment) -> Range<u64> {
    const SHOWN: f64 = 500.0;
    let at = |requests: f64| experiment.time_of_ns(requests) as u64;
    let warm_up = experiment.warm_up * experiment.expected_requests();
    at(warm_up)..at(warm_up + SHOWN).max(at(warm_up) + 1)
}

fn refuse_given(given: &[(&str, bool)], why: &str) -> Result<(), Mistake> {
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(Mistake::at(*name, why)),
        None => Ok(()),
    }
}

fn whole<N: std::str::FromStr>(text: &str) -> Result<N, String> {
    let wrong = |_| format!("'{text}' is not a whole number that is not below 0, such as 3");
    text.parse().map_err(wrong)
}

/// The workers that a policy's dispatchers and timers leave of these cores.
///
/// # Errors
/// They leave none.
pub fn workers_of(policy: &PolicySpec, cores: usize) -> Result<usize, Mistake> {
    let beside = SystemCores::of(policy, 0).beside;
    if cores > beside {
        return Ok(cores - beside);
    }
    let (policy, least) = (policy.to_string(), beside + 1);
    Err(Mistake::at(
        "cores",
        format!("'{policy}' takes {beside} beside its workers: {least} or more"),
    ))
}

/// Names the interrupt costs that the policy takes from its paper because `costs` lacks them. `None` where the policy needs none
/// of them.
fn left_to(policy: &ServerSpec, costs: &Costs) -> Option<String> {
    if !policy.facts().interrupts() {
        return None;
    }
    let params = policy.check(&Shape::new(MAX_WORKERS)).ok()?;
    let own = |names: [&str; 2]| params.iter().find(|(key, _)| names.contains(key));
    let left: Vec<String> = costs
        .not_given()
        .filter_map(|(cost, names)| {
            let (key, value) = own(names)?;
            Some(format!("{cost} ({key}={value})"))
        })
        .collect();
    let name = policy.name();
    (!left.is_empty()).then(|| {
        let left = left.join(", ");
        format!("costs that it does not say are {name}'s own, as the papers have them: {left}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_sets_something() {
        let of = |name| match name {
            "costs" => "costs.json",
            "dispatch-cost" | "network" | "duration" => "5us",
            "resume" => "own-worker",
            "classifier" => "random",
            "unknown" => "0.5",
            "core-change" => "20ms:-3",
            _ => "3",
        };
        for name in SystemSetup::NAMES {
            let mut setup = SystemSetup::default();
            setup.set(name, of(name)).unwrap();
            assert_ne!(setup, SystemSetup::default(), "{name}");
            let wrong = setup.clone().set(name, "x:y");
            let takes_any = name == "costs";
            assert_eq!(wrong.is_ok(), takes_any, "{name}");
            assert!(wrong.map_or_else(|wrong| wrong.place == name, |()| takes_any));
        }
    }

    #[test]
    fn what_is_not_there_is_refused_with_the_nearest_word() {
        let mut setup = SystemSetup::default();
        let refused = setup.set("worker", "3").unwrap_err();
        assert!(refused.sentence.contains("'workers'"), "{refused}");
        setup.set("requests", "3").unwrap();
        assert!(setup.set("duration", "3ms").is_err());
    }

    #[test]
    fn a_run_lasts_as_long_as_its_trace_unless_it_is_ended_before() {
        let trace =
            headway_workload::Trace::from_csv_str("time,class,service\n0,a,1\n9s,a,1\n", "t.csv");
        let workload = trace.unwrap().into_workload("t");
        let mut setup = SystemSetup::default();
        assert_eq!(setup.length_of(&workload, 7), Length::Requests(2));
        setup.requests = Some(1);
        assert_eq!(setup.length_of(&workload, 7), Length::Requests(1));
    }
}
