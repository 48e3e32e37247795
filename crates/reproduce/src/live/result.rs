//! The measured figures beside the paper's claims.

use headway_report::{Summary, format};
use serde::Serialize;

use super::carried::CarriedRate;
use super::claim::LiveJudged;
use super::experiment::{Compiled, LiveExperiment, LiveSystem};
use super::rounds::{LeftOut, LiveRun, Punctuality, carried};
use super::session::{AtRest, LiveMeasurements, LiveSettings};
use super::tail::Tail;
use crate::measured::result::this_machine;
use crate::measured::rounds::median;
use crate::measured::{ExperimentFields as _, LoadsExtent, MeasuredExperiment as _};
use crate::{Datum, Figures, PaperFigure};

/// A figure measured on this machine.
#[derive(Clone, Debug, Serialize)]
pub struct LiveReproduction {
    /// The paper's figure.
    #[serde(flatten)]
    pub about: PaperFigure,
    /// Whether this is the short version.
    pub shortened: bool,
    /// This machine.
    pub machine: String,
    /// The caveats of the figures.
    pub caveats: Vec<String>,
    /// Number of workers, without the dispatcher.
    pub workers: usize,
    /// Seed of arrivals and keys.
    pub seed: u64,
    /// Times of single requests at rest.
    pub at_rest: Vec<AtRest>,
    /// The network's time at rest, which is subtracted from each latency, µs.
    pub network_us: f64,
    /// Answers per second of the first system with requests always waiting: load 1.
    pub capacity_rps: f64,
    /// The slowdown that a carried rate keeps.
    pub slowdown: f64,
    /// The compared systems.
    pub systems: Vec<SystemResult>,
    /// The loads and rounds that do not count.
    pub left_out: LeftOut,
    /// Numbers of rounds that count, and of those that were complete.
    pub rounds: (usize, usize),
    /// Whether the measurement was ended before its last round.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub cut_off: bool,
    /// The claims, judged.
    pub claims: Vec<LiveJudged>,
    /// Medians over the rounds that count, by offered rate.
    pub figures: Figures,
    /// Every run.
    pub runs: Vec<LiveRun>,
    /// The command that repeats the measurement.
    pub command: String,
}

/// A system and the rates that it carried.
#[derive(Clone, Debug, Serialize)]
pub struct SystemResult {
    /// The system's name.
    pub name: String,
    /// The policy and its parameters.
    pub policy: String,
    /// The program, the kind of interruption, and the additional worker.
    pub how: String,
    /// Its workers, a core each.
    pub workers: usize,
    /// All of its cores, with those that dispatch.
    pub cores: usize,
    /// The cores of these that run requests.
    pub serving_cores: usize,
    /// Why the system did not run; none if it ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skipped: Option<String>,
    /// The rates up to which the system kept the slowdown.
    pub carried: Vec<CarriedRates>,
}

/// The rates that a system carried by one percentile.
#[derive(Clone, Debug, Serialize)]
pub struct CarriedRates {
    /// The percentile of the slowdown.
    pub tail: Tail,
    /// The rate in each round that counts.
    pub rounds: Vec<CarriedRate>,
}

impl SystemResult {
    /// The cores for tables: of the workers, then those beside them.
    pub(super) fn cores_shown(&self) -> String {
        format::cores(self.workers, self.cores, self.serving_cores)
    }

    fn carried_by(&self, tail: Tail) -> &[CarriedRate] {
        let mut all = self.carried.iter().filter(|carried| carried.tail == tail);
        all.next().map_or(&[], |carried| &carried.rounds)
    }
}

impl LiveReproduction {
    pub(crate) fn new(
        experiment: &LiveExperiment,
        settings: &LiveSettings,
        measured: LiveMeasurements,
    ) -> Self {
        let extent = experiment.extent(settings.fast);
        let counted = CountedRuns::new(extent, &measured);
        let systems: Vec<SystemResult> = experiment
            .system
            .iter()
            .zip(&measured.skipped)
            .map(|(system, skipped)| counted.system(system, skipped.clone(), experiment))
            .collect();
        let claims = experiment.claim.iter().map(|claim| {
            let of = |name: &str| {
                let mut named = systems.iter().filter(|system| system.name == name);
                named
                    .next()
                    .map_or(&[][..], |system| system.carried_by(claim.tail))
            };
            let pairs = of(&claim.of)
                .iter()
                .copied()
                .zip(of(&claim.over).iter().copied());
            claim.judge(&pairs.collect::<Vec<_>>())
        });
        let claims = claims.collect();
        let figures = counted.figures(experiment);
        let rounds = (counted.rounds().count(), measured.rounds);
        let left_out = counted.left_out;
        Self {
            about: experiment.paper_figure(),
            shortened: settings.fast,
            machine: this_machine(),
            caveats: caveats(measured.workers),
            workers: measured.workers,
            seed: settings.seed,
            at_rest: sent(&measured.baseline.at_rest, experiment),
            network_us: measured.baseline.network_ns as f64 / 1e3,
            capacity_rps: measured.baseline.capacity_rps,
            slowdown: experiment.slowdown,
            systems,
            left_out,
            rounds,
            cut_off: measured.rounds < extent.rounds,
            claims,
            figures,
            runs: measured.runs,
            command: command(experiment, settings),
        }
    }
}

fn sent(at_rest: &[AtRest], experiment: &LiveExperiment) -> Vec<AtRest> {
    let classes = at_rest.iter().zip(&experiment.class);
    classes
        .filter(|(_, class)| class.share > 0.0)
        .map(|(at_rest, _)| at_rest.clone())
        .collect()
}

fn command(experiment: &LiveExperiment, settings: &LiveSettings) -> String {
    let mut command = format!(
        "headway reproduce {} --seed {}",
        experiment.name, settings.seed
    );
    if let Some(workers) = settings.workers {
        command += &format!(" --workers {workers}");
    }
    if let Some(server) = &settings.server {
        command += &format!(" --server {}", server.display());
    }
    command + if settings.fast { " --fast" } else { "" }
}

/// Client, dispatcher and workers need one core each.
fn caveats(workers: usize) -> Vec<String> {
    let (threads, cores) = (workers + 2, headway_sim::available_threads());
    let mut caveats = Vec::new();
    if threads > cores {
        caveats.push(format!(
            "The client, the dispatcher and {workers} worker{} share {cores} core{}: whenever a request is sent, somebody of the server stands still.",
            if workers == 1 { "" } else { "s" },
            if cores == 1 { "" } else { "s" },
        ));
    }
    caveats
}

/// The runs that count.
struct CountedRuns<'a> {
    loads: &'a [f64],
    /// That were complete.
    rounds: usize,
    /// Of each server, without the dispatcher.
    workers: usize,
    runs: Vec<&'a LiveRun>,
    left_out: LeftOut,
}

impl<'a> CountedRuns<'a> {
    fn new(extent: &'a LoadsExtent, measured: &'a LiveMeasurements) -> Self {
        let load_of = |run: &LiveRun| {
            extent
                .loads
                .iter()
                .position(|load| *load == run.load)
                .unwrap_or(0)
        };
        let last: Vec<&LiveRun> = measured.runs.iter().filter(|run| !run.repeated).collect();
        let left_out = LeftOut::of(last.iter().map(|run| Punctuality {
            round: run.round,
            load: load_of(run),
            is_late: run.lag.is_late(),
        }));
        Self {
            loads: &extent.loads,
            rounds: measured.rounds,
            workers: measured.workers,
            runs: last
                .into_iter()
                .filter(|run: &&LiveRun| left_out.counts(run.round, load_of(run)))
                .collect(),
            left_out,
        }
    }

    fn rounds(&self) -> impl Iterator<Item = usize> {
        (0..self.rounds).filter(|round| !self.left_out.rounds.contains(round))
    }

    fn of(&self, system: &str) -> impl Iterator<Item = &'a LiveRun> {
        self.runs
            .iter()
            .copied()
            .filter(move |run| run.system == system)
    }

    fn system(
        &self,
        system: &LiveSystem,
        skipped: Option<String>,
        experiment: &LiveExperiment,
    ) -> SystemResult {
        let rounds = |tail: Tail| {
            self.rounds()
                .filter_map(|round| {
                    let runs: Vec<&LiveRun> = self
                        .of(&system.name)
                        .filter(|run| run.round == round)
                        .collect();
                    carried(&runs, tail, experiment.slowdown)
                })
                .collect()
        };
        let cores = system.cores(self.workers);
        SystemResult {
            name: system.name.clone(),
            policy: system.policy.clone(),
            how: how(system),
            workers: cores.workers,
            cores: cores.all(),
            serving_cores: cores.serving(),
            carried: match skipped {
                None => experiment
                    .tails
                    .iter()
                    .map(|&tail: &Tail| CarriedRates {
                        tail,
                        rounds: rounds(tail),
                    })
                    .collect(),
                Some(_) => Vec::new(),
            },
            skipped,
        }
    }

    /// The medians over rounds, by offered rate.
    fn figures(&self, experiment: &LiveExperiment) -> Figures {
        let mut figures = Figures::default();
        for system in &experiment.system {
            for load in self.loads {
                let runs: Vec<&LiveRun> = self
                    .of(&system.name)
                    .filter(|run| run.load == *load)
                    .collect();
                figures.extend(point(&system.name, &runs));
            }
        }
        figures
    }
}

fn how(system: &LiveSystem) -> String {
    let program = match system.program {
        Compiled::Probes => "with probes",
        Compiled::Plain => "without probes",
    };
    let mut how = String::from(program);
    if system.signal {
        how += ", by signal";
    }
    if system.undispatched {
        how += ", a worker more instead of a dispatcher";
    }
    how
}

/// A figure of a run, with its name in the curves.
struct NamedFigure {
    name: String,
    of: Box<dyn Fn(&LiveRun) -> f64>,
    /// Of a percentile, the number of requests of the first run at or beyond it.
    rests_on: Option<f64>,
}

impl NamedFigure {
    fn new(name: impl Into<String>, of: impl Fn(&LiveRun) -> f64 + 'static) -> Self {
        Self {
            name: name.into(),
            of: Box::new(of),
            rests_on: None,
        }
    }

    fn resting_on(self, tail: Tail, requests: u64) -> Self {
        Self {
            rests_on: Some(requests as f64 * tail.beyond()),
            ..self
        }
    }
}

fn figures(run: &LiveRun) -> Vec<NamedFigure> {
    const TAILS: [Tail; 4] = [Tail::P50, Tail::P90, Tail::P99, Tail::P999];
    let mut figures = Vec::new();
    for tail in TAILS {
        let key = format!("{tail:?}").to_lowercase();
        let of = move |summary: &Summary| tail.of(summary);
        let overall = NamedFigure::new(format!("overall.slowdown.{key}"), move |run| {
            of(&run.server.overall.slowdown)
        });
        let all = run.server.classes.iter().map(|class| class.count).sum();
        figures.push(overall.resting_on(tail, all));
        for (index, class) in run
            .server
            .classes
            .iter()
            .enumerate()
            .filter(|(_, class)| class.count > 0)
        {
            let name = format!("class.{}.slowdown.{key}", class.name);
            let of_class =
                NamedFigure::new(name, move |run| of(&run.server.classes[index].slowdown));
            figures.push(of_class.resting_on(tail, class.count));
        }
    }
    figures.push(NamedFigure::new("achieved", |run| {
        run.run.meta.achieved_rps
    }));
    figures.push(NamedFigure::new("preemptions", |run| {
        run.run.meta.preemptions as f64 / run.run.meta.requests as f64
    }));
    figures.push(NamedFigure::new("lock_yields", |run| {
        run.lock_yields as f64 / run.run.meta.requests as f64
    }));
    figures.push(NamedFigure::new("shed", |run| run.shed as f64));
    figures.push(NamedFigure::new("lost", |run| {
        run.run.extras.delivery.map_or(0.0, |it| it.lost as f64)
    }));
    figures.push(NamedFigure::new("late.p99_us", |run| run.lag.p99_us));
    figures
}

fn point(system: &str, runs: &[&LiveRun]) -> Vec<Datum> {
    let Some(first) = runs.first() else {
        return Vec::new();
    };
    let x = median(runs.iter().map(|run| run.run.meta.offered_rps));
    figures(first)
        .into_iter()
        .map(|figure: NamedFigure| Datum {
            system: system.into(),
            what: figure.name,
            axis: "offered, requests/s".into(),
            x: Some(x),
            value: median(runs.iter().map(|run| (figure.of)(run))),
            rests_on: figure.rests_on,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::carried::Ratio;
    use super::super::rounds::AtServer;
    use super::super::session::Baseline;
    use super::*;
    use crate::measured::{Lag, MeasuredResult as _, MeasuredVerdict};
    use headway_report::{
        ClassMeta, ClassResult, Overall, Recorder, Run, RunExtras, RunLevel, RunMeta,
    };

    /// Slowdown 2 at loads up to `most`, then 500.
    fn run(system: &str, round: usize, load: f64, most: f64, late: bool) -> LiveRun {
        let slowdown = if load <= most { 2 } else { 500 };
        let mut recorder = Recorder::new(&[ClassMeta::new("GET", 1_000.0)]);
        for _ in 0..100 {
            recorder.record(0, 1_000 * slowdown, 1_000);
        }
        let meta = RunMeta {
            policy: "c-fcfs".into(),
            params: serde_json::Map::new(),
            level: RunLevel::Live,
            workload: "store".into(),
            workers: 1,
            seed: 1,
            requests: 100,
            offered_rps: 1_000.0 * load,
            achieved_rps: 1_000.0 * load,
            load,
            utilization: load,
            dropped: 0,
            preemptions: 50,
            overloaded: false,
        };
        LiveRun {
            round,
            load,
            system: system.into(),
            shed: 0,
            failed: 0,
            lag: Lag {
                p50_us: 4.0,
                p99_us: 30.0,
                max_us: 300.0,
                late_fraction: if late { 0.5 } else { 0.0 },
            },
            repeated: false,
            lock_yields: 5,
            server: AtServer {
                overall: Overall::of(&recorder.overall()),
                classes: recorder.classes().iter().map(ClassResult::of).collect(),
            },
            run: Run::new(meta, &recorder, RunExtras::default()),
        }
    }

    /// Two systems at loads 0.2, 0.4 … 0.8 in three rounds; the second carries about twice the load of the first.
    fn result(change: impl FnOnce(&mut Vec<LiveRun>)) -> LiveReproduction {
        let mut experiment = LiveExperiment::named("concord-fig9-live").unwrap();
        experiment.system.truncate(2);
        experiment.full.loads = vec![0.2, 0.4, 0.6, 0.8];
        experiment.class.truncate(1);
        experiment.claim.truncate(1);
        experiment.claim[0].of = "Shinjuku".into();
        experiment.claim[0].over = "c-FCFS".into();
        let mut runs = Vec::new();
        for round in 0..3 {
            for load in [0.2, 0.4, 0.6, 0.8] {
                runs.push(run("c-FCFS", round, load, 0.2, false));
                runs.push(run("Shinjuku", round, load, 0.6, false));
            }
        }
        change(&mut runs);
        let at_rest = AtRest {
            class: "GET".into(),
            service_ns: 1_000,
            with_probes_ns: Some(1_010),
            round_trip_ns: 40_000,
        };
        let measured = LiveMeasurements {
            workers: 1,
            baseline: Baseline {
                at_rest: vec![at_rest],
                network_ns: 20_000,
                capacity_rps: 1_000.0,
            },
            skipped: vec![None, None],
            runs,
            rounds: 3,
        };
        LiveReproduction::new(&experiment, &LiveSettings::default(), measured)
    }

    fn ratio(result: &LiveReproduction) -> &Ratio {
        &result.claims[0].ours
    }

    #[test]
    fn rounds_that_agree_decide() {
        let result = result(|_| {});
        // Both systems cross slowdown 50 at the same fraction of the way between two steps, beyond 0.2 and beyond 0.6.
        let way = 0.2 * (25.0_f64.ln() / 250.0_f64.ln());
        let expected = (0.6 + way) / (0.2 + way);
        assert!((ratio(&result).estimate.unwrap() - expected).abs() < 1e-9);
        assert_eq!(result.claims[0].verdict, MeasuredVerdict::Deviates);
        assert_eq!((result.rounds, ratio(&result).rounds), ((3, 3), 3));
    }

    #[test]
    fn what_is_late_is_left_out_and_what_was_repeated_does_not_count() {
        let late = |runs: &mut Vec<LiveRun>, at: usize| runs[at].lag.late_fraction = 0.5;
        // One late load: the first round still counts, for both systems without this load.
        let one = result(|runs| late(runs, 0));
        assert_eq!((one.rounds, one.left_out.loads.len()), ((3, 3), 1));
        assert!(
            one.systems[1].carried[0]
                .rounds
                .iter()
                .all(|carried| matches!(carried, CarriedRate::At(_)))
        );
        // Two late loads: the first round does not count.
        let two = result(|runs| [0, 3].into_iter().for_each(|at| late(runs, at)));
        assert_eq!((two.rounds, ratio(&two).rounds), ((2, 3), 2));
        // A late run whose repetition was in time.
        let again = result(|runs| {
            let mut spoilt = run("c-FCFS", 0, 0.2, 0.0, true);
            spoilt.repeated = true;
            runs.insert(0, spoilt);
        });
        assert_eq!(again.left_out, LeftOut::default());
        assert_eq!(ratio(&again), ratio(&result(|_| {})));
    }

    #[test]
    fn no_round_no_verdict() {
        let none = result(|runs| runs.iter_mut().for_each(|run| run.lag.late_fraction = 0.5));
        assert_eq!(
            (none.rounds.0, none.claims[0].verdict),
            (0, MeasuredVerdict::Undecided)
        );
        assert!(none.report().text().contains("0 of 3 rounds count"));
    }

    #[test]
    fn all_forms_tell_the_same() {
        let result = result(|_| {});
        let report = result.report();
        let (text, markdown) = (report.text(), report.markdown());
        let page = report.page().render();
        for words in ["deviates", "Shinjuku", "3 of 3 rounds count", "--seed 0"] {
            assert!(
                text.contains(words) && markdown.contains(words) && page.contains(words),
                "{words}"
            );
        }
        assert!(page.contains("<svg"));
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(json["runs"].as_array().unwrap().len(), 24);
        assert_eq!(json["claims"][0]["verdict"], "deviates");
    }
}
