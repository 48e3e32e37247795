//! A workload that changes its shape: two classes exchange their service times every so often, and the policy has to follow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Result, ensure};
use clap::Args;
use headway_machine::Clock;
use headway_policy::Rng;
use headway_pool::{ClassOptions, Pool, PoolBuilder};

use crate::lost::{MachineLook, given_to};
use crate::report::quantile;

const SHORT_NS: u64 = 20_000;
const LONG_NS: u64 = 2_000_000;
const LONG_SHARE: f64 = 0.05;
const WORKERS: usize = 2;

/// Of what the machine gives to as many threads as workers: beside others' work less arrives, and what follows is a change's work all the same.
const LOAD: f64 = 0.6;

/// For which the machine's gift is looked at.
const GIVEN_OVER: Duration = Duration::from_secs(1);

/// Latencies are looked at in windows of this length, ns.
const WINDOW_NS: u64 = 100_000_000;

/// A window is as before once its p90 is at most so many times that of the end of its phase.
const SETTLED: f64 = 2.0;

/// What `shift` asks for.
#[derive(Args)]
pub(crate) struct ShiftArgs {
    /// Policies to compare; repeat for more
    #[arg(long = "policy", default_values_t = ["default".to_owned(), "checkpoints".to_owned()])]
    policies: Vec<String>,
    /// Seconds between two changes
    #[arg(long, default_value_t = 10)]
    seconds: u64,
    /// Changes in all
    #[arg(long, default_value_t = 5)]
    changes: u64,
    /// Nice value of the pool's threads; with 10 they make way for the thread that submits, and for every other process
    #[arg(long, default_value_t = 10)]
    nice: u8,
}

/// A job: when it was due, and its latency once it has ended.
struct ShiftedJob {
    at_ns: u64,
    is_long: bool,
    latency_ns: AtomicU64,
}

/// Measures and prints.
///
/// # Errors
/// When a pool does not start or end.
pub(crate) fn run(args: &ShiftArgs) -> Result<()> {
    println!(
        "two classes exchange 20 µs and 2 ms every {} s, load {LOAD} of what two threads are given",
        args.seconds
    );
    for policy in &args.policies {
        let builder = match policy.as_str() {
            "default" => Pool::builder(),
            "checkpoints" => Pool::builder().checkpoints(),
            named => Pool::builder().policy(named),
        };
        let span_ns = args.seconds * 1_000_000_000;
        let given = given_to(WORKERS, args.nice, GIVEN_OVER);
        let before = MachineLook::take()?;
        let jobs = replay(builder.nice(args.nice), span_ns, args.changes, given)?;
        let others = before.others_since()?;
        let phases = (0..=args.changes).map(|phase| phase_of(&jobs, phase * span_ns, span_ns));
        let phases: Vec<Phase> = phases.collect();
        let follows: Vec<f64> = phases[1..].iter().map(|phase| phase.follows_ms).collect();
        let settled: Vec<f64> = phases.iter().map(|phase| phase.settled_us).collect();
        println!(
            "  {policy:24} shorts' p90 at a phase's end {:>8.0} µs; as at the end again after {:>6.0} ms (worst {:.0}); given {:.2} of two cores, others had {:.0} %",
            quantile(&settled, 0.5),
            quantile(&follows, 0.5),
            quantile(&follows, 1.0),
            given,
            100.0 * others
        );
    }
    Ok(())
}

/// What became of the shorts between two changes.
struct Phase {
    settled_us: f64,
    /// The end of the last window of the phase's first half whose p90 is unlike that of its second half.
    follows_ms: f64,
}

fn phase_of(jobs: &[ShiftedJob], from_ns: u64, span_ns: u64) -> Phase {
    let p90_ns = |from_ns: u64, to_ns: u64| {
        let shorts = jobs
            .iter()
            .filter(|job| !job.is_long && (from_ns..to_ns).contains(&job.at_ns));
        let latencies: Vec<f64> = shorts
            .map(|job| job.latency_ns.load(Ordering::Relaxed) as f64)
            .collect();
        if latencies.is_empty() {
            0.0
        } else {
            quantile(&latencies, 0.9)
        }
    };
    let settled_ns = p90_ns(from_ns + span_ns / 2, from_ns + span_ns);
    let windows = span_ns / 2 / WINDOW_NS;
    let unlike = (0..windows).rev().find(|window| {
        let at_ns = from_ns + window * WINDOW_NS;
        p90_ns(at_ns, at_ns + WINDOW_NS) > SETTLED * settled_ns
    });
    Phase {
        settled_us: settled_ns / 1e3,
        follows_ms: unlike.map_or(0.0, |window| ((window + 1) * WINDOW_NS) as f64 / 1e6),
    }
}

/// Submits the jobs when they are due, and returns them once all have ended.
fn replay(
    builder: PoolBuilder,
    span_ns: u64,
    changes: u64,
    given: f64,
) -> Result<Arc<[ShiftedJob]>> {
    let classes = ["first", "second"];
    let builder = classes.iter().fold(
        builder.workers(WORKERS).capacity(1 << 20),
        |builder, name| builder.class(name, ClassOptions::new()),
    );
    let pool = builder.build()?;
    let handles = [pool.class("first")?, pool.class("second")?];
    let jobs: Arc<[ShiftedJob]> = drawn((changes + 1) * span_ns, LOAD * given).into();
    let clock = Clock::global();
    let start_ns = clock.now_ns();
    for index in 0..jobs.len() {
        let (at_ns, is_long) = (jobs[index].at_ns, jobs[index].is_long);
        let now_ns = clock.now_ns() - start_ns;
        if at_ns > now_ns {
            std::thread::sleep(Duration::from_nanos(at_ns - now_ns));
        }
        let is_exchanged = (at_ns / span_ns) % 2 == 1;
        let own = Arc::clone(&jobs);
        let job = move || {
            spin(clock, if is_long { LONG_NS } else { SHORT_NS });
            let latency_ns = clock.now_ns() - start_ns - at_ns;
            own[index].latency_ns.store(latency_ns, Ordering::Relaxed);
        };
        let class = handles[usize::from(is_long != is_exchanged)];
        pool.submit(class, job).detach();
    }
    pool.shutdown(Duration::from_secs(60))?;
    let unserved = jobs
        .iter()
        .filter(|job| job.latency_ns.load(Ordering::Relaxed) == 0);
    ensure!(unserved.count() == 0, "jobs were refused or shed");
    Ok(jobs)
}

fn drawn(span_ns: u64, load: f64) -> Vec<ShiftedJob> {
    let mean_ns = SHORT_NS as f64 * (1.0 - LONG_SHARE) + LONG_NS as f64 * LONG_SHARE;
    let mut rng = Rng::new(7);
    let mut uniform = || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let (mut at_ns, mut jobs) = (0.0, Vec::new());
    loop {
        at_ns -= mean_ns / (load * WORKERS as f64) * (1.0 - uniform()).ln();
        if at_ns as u64 >= span_ns {
            return jobs;
        }
        jobs.push(ShiftedJob {
            at_ns: at_ns as u64,
            is_long: uniform() < LONG_SHARE,
            latency_ns: AtomicU64::new(0),
        });
    }
}

/// Computes for so long, with checkpoints; time in which others ran there is no service.
fn spin(clock: Clock, service_ns: u64) {
    let work = clock.ticks_in(service_ns);
    let (mut done, mut last) = (0, clock.ticks());
    let mut pauses = headway_fiber::suspensions();
    while done < work {
        let _ = headway_pool::checkpoint();
        let (now, seen) = (clock.ticks(), headway_fiber::suspensions());
        if seen == pauses {
            done += now.wrapping_sub(last);
        }
        (pauses, last) = (seen, now);
    }
}
