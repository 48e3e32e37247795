//! Compares the simulator with the live server: both get the same arrivals, policy and workers, and
//! the simulator this machine's calibrated costs.
//!
//! Every machine interrupts a server now and then, and the simulator does not model that. Both process the same requests, so
//! disturbed requests can be left out of both. A request is disturbed if it is, in the simulation, in the server during the
//! [aftermath](Aftermath) of a gap. The rule reads the gap log and the simulation only, never the live latencies that are judged.

use crate::gaps::Aftermath;
use crate::{Disturbance, Observed, Trial, TrialError};
use headway_report::{ClassResult, Overall, Recorder, Run};
use headway_sim::{Costs, Experiment};

/// Largest relative difference of the medians.
pub const P50_TOLERANCE: f64 = 0.15;
/// Largest relative difference of the means.
pub const MEAN_TOLERANCE: f64 = 0.20;
/// Above this load small errors in the costs grow without bound: no verdict.
pub const LOAD_MAX: f64 = 0.7;
/// Smallest fraction of undisturbed requests for a verdict.
pub const UNTOUCHED_MIN: f64 = 0.25;
/// Fewest undisturbed requests for a verdict.
pub const REQUESTS_MIN: usize = 1_000;

/// A live run and its simulation.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The live run, with all requests.
    pub live: Run,
    /// The simulation, with all requests.
    pub simulated: Run,
    /// Both runs, restricted to undisturbed requests.
    pub untouched: Untouched,
    /// The disturbances of the server.
    pub disturbance: Disturbance,
}

/// The undisturbed requests.
#[derive(Clone, PartialEq, Debug)]
pub struct Untouched {
    /// Their number.
    pub requests: usize,
    /// Their fraction of all measured requests.
    pub fraction: f64,
    /// Latencies and slowdowns of all of them.
    pub overall: BothOverall,
    /// Their results in the live run.
    pub live: Centre,
    /// Their results in the simulation.
    pub simulated: Centre,
    /// Their results by class, live and simulated. A request that stays longer in the server is disturbed more often, so a long tail
    /// is cut more than a short one.
    pub classes: Vec<(ClassResult, ClassResult)>,
}

/// Results of the same requests, live and in the simulator.
#[derive(Clone, PartialEq, Debug)]
pub struct BothOverall {
    /// Live.
    pub live: Overall,
    /// In the simulator.
    pub simulated: Overall,
}

/// Median and mean of latencies, µs; NaN without latencies.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Centre {
    /// Median.
    pub p50_us: f64,
    /// Mean.
    pub mean_us: f64,
}

/// The verdict of a comparison.
#[derive(Clone, PartialEq, Debug)]
pub enum Agreement {
    /// Within the tolerances.
    Agrees,
    /// Not within them.
    Differs,
    /// Only this fraction of the requests is undisturbed: too little for a verdict.
    TooNoisy(f64),
    /// The load is above [`LOAD_MAX`]: no verdict.
    TooLoaded(f64),
}

impl Comparison {
    /// Simulates the live run's experiment.
    ///
    /// # Errors
    /// [`TrialError`] when the experiment is not valid.
    pub fn of(trial: &Trial, observed: Observed, costs: Costs) -> Result<Self, TrialError> {
        let experiment = Experiment {
            costs,
            trace_window: Some(0..u64::MAX),
            ..trial.simulated()?
        };
        let simulation = experiment.run()?;
        let aftermath = Aftermath::of(&observed.gaps, observed.run.meta.load);
        let metas = trial.class_metas();
        let (mut live, mut simulated) = (Recorder::new(&metas), Recorder::new(&metas));
        let mut pairs = Vec::new();
        let mut measured = 0;
        for slice in simulation.slices.iter().filter(|slice| slice.done) {
            let served = observed.served.get(slice.request as usize);
            let Some(served) = served.copied().flatten() else {
                continue;
            };
            measured += 1;
            if aftermath.touches(served.arrived_ns, slice.to_ns) {
                continue;
            }
            let simulated_ns = slice.to_ns - served.arrived_ns + trial.experiment.network_ns;
            let class = usize::from(served.class);
            live.record(class, served.latency_ns, served.service_ns);
            simulated.record(class, simulated_ns, served.service_ns);
            pairs.push((served.latency_ns, simulated_ns));
        }
        let overall = BothOverall {
            live: Overall::of(&live.overall()),
            simulated: Overall::of(&simulated.overall()),
        };
        let classes = live.classes().iter().zip(simulated.classes());
        Ok(Self {
            live: observed.run,
            simulated: simulation.run,
            untouched: Untouched {
                classes: classes
                    .map(|(live, simulated)| (ClassResult::of(live), ClassResult::of(simulated)))
                    .collect(),
                ..Untouched::of(&pairs, measured, overall)
            },
            disturbance: observed.disturbance,
        })
    }

    /// The verdict, from the undisturbed requests.
    #[must_use]
    pub fn agreement(&self) -> Agreement {
        let (load, untouched) = (self.live.meta.load, &self.untouched);
        let (p50, mean) = untouched.ratios();
        let within = (p50 - 1.0).abs() <= P50_TOLERANCE && (mean - 1.0).abs() <= MEAN_TOLERANCE;
        if load > LOAD_MAX {
            Agreement::TooLoaded(load)
        } else if !untouched.is_enough() {
            Agreement::TooNoisy(untouched.fraction)
        } else if within {
            Agreement::Agrees
        } else {
            Agreement::Differs
        }
    }
}

impl Untouched {
    /// The results for pairs of latencies, live and simulated, ns.
    fn of(pairs: &[(u64, u64)], measured: usize, overall: BothOverall) -> Self {
        Self {
            requests: pairs.len(),
            fraction: pairs.len() as f64 / measured.max(1) as f64,
            live: Centre::of(pairs.iter().map(|pair| pair.0)),
            simulated: Centre::of(pairs.iter().map(|pair| pair.1)),
            classes: Vec::new(),
            overall,
        }
    }

    /// Median and mean, live over simulated.
    #[must_use]
    pub fn ratios(&self) -> (f64, f64) {
        (
            self.live.p50_us / self.simulated.p50_us,
            self.live.mean_us / self.simulated.mean_us,
        )
    }

    /// Whether enough undisturbed requests are left for a verdict.
    #[must_use]
    pub fn is_enough(&self) -> bool {
        self.fraction >= UNTOUCHED_MIN && self.requests >= REQUESTS_MIN
    }
}

impl Centre {
    fn of(latencies_ns: impl Iterator<Item = u64>) -> Self {
        let mut latencies_ns: Vec<u64> = latencies_ns.collect();
        latencies_ns.sort_unstable();
        let sum_ns: u64 = latencies_ns.iter().sum();
        let p50_ns = latencies_ns.get(latencies_ns.len() / 2).copied();
        Self {
            p50_us: p50_ns.map_or(f64::NAN, |ns| ns as f64 / 1e3),
            mean_us: sum_ns as f64 / latencies_ns.len() as f64 / 1e3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::Workload;

    /// A trial, and a live run of it that equals the simulation except for the effect of `change`.
    fn compared(load: f64, gaps: &[crate::Gap], change: impl Fn(u64, u64) -> u64) -> Comparison {
        let workload = Workload::named("shenango-bimodal").unwrap();
        let mut experiment = Experiment::new(workload, "c-fcfs".parse().unwrap())
            .workers(1)
            .load(load)
            .requests(20_000);
        experiment.trace_window = Some(0..u64::MAX);
        let outcome = experiment.run().unwrap();
        let mut served = vec![None; 20_000];
        for slice in outcome.slices.iter().filter(|slice| slice.done) {
            let latency_ns = slice.to_ns - slice.waited_from_ns;
            let live_ns = change(slice.waited_from_ns, latency_ns);
            served[slice.request as usize] = Some(crate::Served {
                class: 0,
                arrived_ns: slice.waited_from_ns,
                service_ns: 1_000,
                latency_ns: live_ns,
            });
        }
        let observed = Observed {
            run: outcome.run,
            disturbance: Disturbance::default(),
            gaps: gaps.to_vec(),
            renewals: 0,
            served,
        };
        Comparison::of(&Trial::new(experiment), observed, Costs::default()).unwrap()
    }

    #[test]
    fn what_went_as_simulated_agrees() {
        let same = compared(0.5, &[], |_, latency_ns| latency_ns);
        assert_eq!(same.untouched.ratios(), (1.0, 1.0));
        assert_eq!(same.untouched.requests, 20_000);
        let (live, simulated) = &same.untouched.classes[0];
        assert_eq!((live, live.count), (simulated, 20_000));
        assert_eq!(same.agreement(), Agreement::Agrees);
        let loaded = compared(0.8, &[], |_, latency_ns| latency_ns);
        assert!(matches!(loaded.agreement(), Agreement::TooLoaded(_)));
    }

    #[test]
    fn what_is_slower_throughout_differs() {
        let slow = compared(0.5, &[], |_, latency_ns| latency_ns * 5 / 4);
        assert_eq!(slow.agreement(), Agreement::Differs);
    }

    /// The machine takes 10 ms; a request that arrives in the next 20 ms waits for the rest of them.
    #[test]
    fn what_the_machine_took_is_left_out_of_both() {
        const TAKEN: std::ops::Range<u64> = 50_000_000..60_000_000;
        let delayed = |arrived_ns: u64, latency_ns: u64| {
            let since_ns = arrived_ns.saturating_sub(TAKEN.start);
            let felt = (1..20_000_000).contains(&since_ns);
            latency_ns + if felt { 10_000_000 - since_ns / 2 } else { 0 }
        };
        let told = compared(0.5, std::slice::from_ref(&TAKEN), delayed);
        assert_eq!(told.untouched.ratios(), (1.0, 1.0));
        assert!(told.untouched.fraction < 0.9);
        assert_eq!(told.agreement(), Agreement::Agrees);
        assert_eq!(compared(0.5, &[], delayed).agreement(), Agreement::Differs);
    }

    #[test]
    fn a_machine_that_takes_too_much_leaves_nothing_to_judge() {
        let gaps: Vec<crate::Gap> = (0..100)
            .map(|n| n * 4_000_000..n * 4_000_000 + 600_000)
            .collect();
        let noisy = compared(0.5, &gaps, |_, latency_ns| latency_ns * 2);
        assert!(
            matches!(noisy.agreement(), Agreement::TooNoisy(_)),
            "{noisy:?}"
        );
    }
}
