//! Whether the printed intervals hold the true ratio: rounds in virtual time, on a machine whose stops are known.

use crate::commands::demo::lane::tests::{lane, round_of, subset};
use crate::commands::demo::lane::{Basis, Lane, Round, Sample};
use crate::commands::demo::stopped::{ArrivingRequest, ServerTime, stays_ns};
use crate::commands::demo::untouched::{Filtered, Foreseen, Lives, filtered};
use crate::commands::demo::verdict::{PolicyRatio, paired, ratios};
use headway_load::Answered;
use headway_machine::noise::Stop;
use headway_policy::Rng;
use headway_report::stats::ConfidenceInterval;
use headway_report::{ClassMeta, Recorder, nearest_rank};
use headway_sim::{available_threads, in_parallel};
use headway_workload::{Arrival, Class, Generator, Offered, ServiceDistribution, Workload};

const MS: u64 = 1_000_000;
const WORKERS: usize = 2;
const LOAD: f64 = 0.35;
const SERVICE_NS: [u64; 2] = [20_000, 2_400_000];
const SCAN_SHARE: f64 = 0.1;
const ROUND_NS: u64 = 500 * MS;
const WARM_UP: f64 = 0.1;
const ROUNDS: u64 = 8;
/// The base, which lets GETs wait behind SCANs, and a policy that interrupts SCANs for them.
const POLICIES: [&str; 2] = ["c-fcfs", "srpt"];
const SEEDS: u64 = 100;
/// The fewest of the seeds whose interval must hold the true ratio.
const COVERED: usize = 93;
/// Rounds over which the true ratio is the mean.
const TRUE_ROUNDS: u64 = 600;

/// The stops of a machine.
#[derive(Clone, Copy)]
struct Stops {
    /// The mean time between two beginnings, ns. A run has half to one and a half of it: neighbours come and go.
    between_ns: u64,
    /// How long each lasts, ns.
    length_ns: u64,
}

/// A machine that stops for a moment twice a second.
const QUIET: Stops = Stops {
    between_ns: 500 * MS,
    length_ns: MS,
};
/// One that is stopped for a third of the time.
const BUSY: Stops = Stops {
    between_ns: 24 * MS,
    length_ns: 8 * MS,
};

impl Stops {
    /// Those of one run, which follow each other.
    fn of_run(self, seed: u64) -> Vec<Stop> {
        let rarity = 0.5 + Rng::new(seed).below(1_000) as f64 / 1_000.0;
        let rate = 1e9 / (self.between_ns as f64 * rarity);
        let begins = arrivals(&of_classes(&[("stop", 1.0, 1)]), rate, !seed);
        let mut stops: Vec<Stop> = Vec::new();
        for ArrivingRequest { at_ns, .. } in begins {
            let from_ns = stops.last().map_or(at_ns, |last| at_ns.max(last.to_ns));
            stops.push(Stop {
                from_ns,
                to_ns: from_ns + self.length_ns,
                lost_ns: self.length_ns,
            });
        }
        stops
    }
}

/// Classes by name, share and service time in ns.
fn of_classes(classes: &[(&str, f64, u64)]) -> Workload {
    let class = |&(name, share, mean_ns): &(&str, f64, u64)| {
        Class::new(name, share, ServiceDistribution::Constant { mean_ns })
    };
    Workload::new("coverage", classes.iter().map(class).collect())
}

fn workload() -> Workload {
    of_classes(&[
        ("GET", 1.0 - SCAN_SHARE, SERVICE_NS[0]),
        ("SCAN", SCAN_SHARE, SERVICE_NS[1]),
    ])
}

/// What arrives within a round.
fn arrivals(workload: &Workload, rate_rps: f64, seed: u64) -> Vec<ArrivingRequest> {
    let arrivals = Generator::new(workload, Offered::Rate(rate_rps), seed);
    let of_round = arrivals.take_while(|arrival| arrival.at_ns < ROUND_NS);
    let arriving = |arrival: Arrival| ArrivingRequest {
        at_ns: arrival.at_ns,
        class: usize::from(arrival.class),
    };
    of_round.map(arriving).collect()
}

/// A policy's part of a round.
struct PolicyPart {
    stops: Vec<Stop>,
    /// How long each request stayed, ns.
    stays_ns: Vec<u64>,
}

/// The requests of a round, and how each policy served them: the same requests on machines with stops of their own.
fn play(stops: Option<Stops>, seed: u64) -> (Vec<ArrivingRequest>, [PolicyPart; 2]) {
    let workload = workload();
    let rate_rps = workload.rate_for_load(LOAD, WORKERS);
    let requests = arrivals(&workload, rate_rps, seed);
    let parts = [0, 1].map(|index| {
        let stops = stops.map_or_else(Vec::new, |it| it.of_run(2 * seed + index as u64));
        let spans = stops.iter().map(|stop| stop.from_ns..stop.to_ns);
        let time = ServerTime::of(spans, &(0..u64::MAX));
        let policy = POLICIES[index].parse().unwrap();
        PolicyPart {
            stays_ns: stays_ns(&workload, WORKERS, &policy, &requests, &time).unwrap(),
            stops,
        }
    });
    (requests, parts)
}

/// The requests after the warm-up.
fn measured(requests: &[ArrivingRequest]) -> impl Iterator<Item = (usize, &ArrivingRequest)> {
    let skipped = (requests.len() as f64 * WARM_UP) as usize;
    requests.iter().enumerate().skip(skipped)
}

/// The rounds of both policies, as the demonstration sees them.
fn rounds(stops: Stops, seed: u64) -> [Round; 2] {
    let (requests, parts) = play(Some(stops), seed);
    let (_, undisturbed) = play(None, seed);
    let lives = Lives::under(undisturbed.map(|part| part.stays_ns).to_vec());
    let metas = ["GET", "SCAN"].iter().zip(SERVICE_NS);
    let metas: Vec<ClassMeta> = metas
        .map(|(name, ns)| ClassMeta::new(*name, ns as f64))
        .collect();
    [0, 1].map(|policy| {
        let PolicyPart { stops, stays_ns } = &parts[policy];
        let answer = |(index, request): (usize, &ArrivingRequest)| Answered {
            index,
            class: request.class,
            due_ns: request.at_ns,
            since_due_ns: stays_ns[index],
            since_sent_ns: stays_ns[index],
        };
        let answers: Vec<Answered> = measured(&requests).map(answer).collect();
        let mut all = Recorder::new(&metas);
        for answer in &answers {
            all.record(answer.class, answer.since_due_ns, SERVICE_NS[answer.class]);
        }
        let foreseen = Foreseen {
            longest: &lives.longest,
            without_stops: &lives.by_policy[policy],
            with_stops: stays_ns,
        };
        let Filtered {
            untouched,
            distortion,
            stopped,
        } = filtered(&answers, &metas, stops, &foreseen, LOAD);
        let count = answers.len() as u64;
        let (all, untouched) = (subset(all, count), subset(untouched, count));
        round_of(all, untouched, distortion, stopped)
    })
}

/// The ratio of GETs' p99 over many rounds, all requests counted.
fn true_ratio(stops: Option<Stops>) -> f64 {
    let seeds: Vec<u64> = (0..TRUE_ROUNDS).map(|round| 9_000_000 + round).collect();
    let log = |seed: &u64| {
        let (requests, parts) = play(stops, *seed);
        let [base, other] = parts.map(|part| {
            let gets = measured(&requests).filter(|(_, request)| request.class == 0);
            let mut stays: Vec<u64> = gets.map(|(index, _)| part.stays_ns[index]).collect();
            stays.sort_unstable();
            stays[nearest_rank(stays.len() as u64, 0.99) as usize - 1] as f64
        });
        (other / base).ln()
    };
    let logs = in_parallel(&seeds, available_threads(), log, |_, _| {});
    (logs.iter().sum::<f64>() / TRUE_ROUNDS as f64).exp()
}

/// What the demonstration prints for GETs after eight rounds.
struct Printed {
    ratio: PolicyRatio,
    /// The interval over untouched requests, whether it was printed or not.
    by_filter: Option<ConfidenceInterval>,
}

fn printed(stops: Stops) -> Vec<Printed> {
    let seeds: Vec<u64> = (0..SEEDS).collect();
    let print = |seed: &u64| {
        let mut lanes: [Lane; 2] = POLICIES.map(|policy| lane(policy, Vec::new()));
        for round in 0..ROUNDS {
            let of_round = rounds(stops, 1_000 * seed + round);
            for (lane, round) in lanes.iter_mut().zip(of_round) {
                lane.rounds.push(round);
            }
        }
        let of_gets = Sample::untouched(Some(0));
        let p99 = |run: &headway_report::Run| run.classes[0].latency_us.p99;
        Printed {
            ratio: ratios(&lanes, &lanes[0]).remove(0),
            by_filter: paired(&lanes[1], &lanes[0], of_gets, p99),
        }
    };
    in_parallel(&seeds, available_threads(), print, |_, _| {})
}

/// The printed intervals that hold what they say they are of: of untouched requests the ratio without stops, of all requests that at equal stops.
fn covered(all: &[Printed], without_stops: f64, at_equal_stops: f64) -> usize {
    let holds = |printed: &&Printed| {
        let truth = match printed.ratio.compared.of {
            Basis::Untouched => without_stops,
            Basis::All => at_equal_stops,
        };
        printed.ratio.p99.is_some_and(|it| it.contains(truth))
    };
    all.iter().filter(holds).count()
}

fn of_basis(all: &[Printed], basis: Basis) -> usize {
    let of = all.iter().filter(|it| it.ratio.compared.of == basis);
    of.count()
}

#[test]
fn on_a_quiet_machine_untouched_requests_give_the_ratio_without_stops() {
    let without_stops = true_ratio(None);
    assert!(without_stops < 0.02, "{without_stops}");
    let all = printed(QUIET);
    assert_eq!(of_basis(&all, Basis::Untouched), all.len());
    let covered = covered(&all, without_stops, f64::NAN);
    println!("{covered} of {SEEDS} intervals hold {without_stops}");
    assert!(covered >= COVERED, "{covered}");
}

/// And the filter, which the demonstration does without there, would be off.
#[test]
fn on_a_busy_machine_all_requests_give_the_ratio_at_equal_stops() {
    let (without_stops, at_equal_stops) = (true_ratio(None), true_ratio(Some(BUSY)));
    let all = printed(BUSY);
    let over_all = of_basis(&all, Basis::All);
    let covered = covered(&all, without_stops, at_equal_stops);
    let by_filter = all.iter().filter_map(|printed| printed.by_filter);
    let is_off = |it: &ConfidenceInterval| !it.contains(without_stops);
    let (off, filtered) = (by_filter.clone().filter(is_off).count(), by_filter.count());
    println!(
        "over all requests {over_all}; {covered} of {SEEDS} intervals hold {at_equal_stops} (without stops {without_stops}); \
         the filter is off in {off} of {filtered}"
    );
    assert!(over_all >= COVERED, "{over_all}");
    assert!(covered >= COVERED, "{covered}");
    assert!(off * 4 >= filtered, "{off} of {filtered}");
}
