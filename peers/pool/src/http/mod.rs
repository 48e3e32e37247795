//! An HTTP service with short points and long reports, each way that programs run them, before an open-loop client.
//!
//! Client and service share the machine's cores, as all contenders do. A point computes for 20 µs, a report for 20 ms, nine points to a report.

mod client;
mod service;

use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use client::Answered;
use service::{POINT, REPORT, Service, Way};

use crate::report::quantile;

/// What `http` asks for.
#[derive(Args)]
pub(crate) struct HttpArgs {
    /// Which ways to compare; repeat for more [default: all]
    #[arg(long = "way", value_enum)]
    ways: Vec<Way>,
    /// Offered load, of the capacity of two cores; repeat for more
    #[arg(long = "load", default_values_t = [0.3, 0.6, 0.8, 2.0])]
    loads: Vec<f64>,
    /// Seconds of each round that are measured
    #[arg(long, default_value_t = 5)]
    seconds: u64,
    /// Seconds before them, in which a pool learns what its classes are, and every way fills its connections
    #[arg(long, default_value_t = 4)]
    warm_up: u64,
    /// Rounds, each way once in each
    #[arg(long, default_value_t = 5)]
    rounds: usize,
}

/// One round of one way.
struct HttpFigures {
    point_p99_us: f64,
    report_p99_us: f64,
    /// Work that was answered in time, of what two cores can do.
    goodput: f64,
    /// Requests that were refused, of all.
    refused: f64,
}

/// Measures and prints.
///
/// # Errors
/// When a service does not start or breaks a connection.
pub(crate) fn run(args: &HttpArgs) -> Result<()> {
    let ways = if args.ways.is_empty() {
        Way::value_variants().to_vec()
    } else {
        args.ways.clone()
    };
    println!("the client's threads: {}", client::responsiveness());
    for &load in &args.loads {
        let mut rounds: Vec<Vec<HttpFigures>> = ways.iter().map(|_| Vec::new()).collect();
        for round in 0..args.rounds {
            for turn in 0..ways.len() {
                let at = (round + turn) % ways.len();
                rounds[at].push(measure(ways[at], load, args, round as u64)?);
            }
        }
        print_table(load, &ways, &rounds);
    }
    Ok(())
}

fn measure(way: Way, load: f64, args: &HttpArgs, seed: u64) -> Result<HttpFigures> {
    let measured = Duration::from_secs(args.seconds);
    let from = Duration::from_secs(args.warm_up);
    let span = from + measured;
    let service = Service::start(way)?;
    let answers = client::drive(service.address(), load, span, 1 + seed)?;
    let later = || answers.iter().filter(|answer| answer.due >= from);
    let p99_us = |is_report: bool| {
        let of_kind = later().filter(|answer| answer.is_report == is_report);
        let unrefused: Vec<_> = of_kind.filter(|answer| answer.status != 503).collect();
        let served = unrefused.iter().filter(|answer| answer.status == 200);
        let latencies: Vec<f64> = served
            .map(|answer| answer.latency.as_secs_f64() * 1e6)
            .collect();
        // What was never answered took longer than all that was.
        let rank = 0.99 * unrefused.len() as f64 / latencies.len() as f64;
        if rank <= 1.0 {
            quantile(&latencies, rank)
        } else {
            f64::INFINITY
        }
    };
    let work = |answer: &Answered| if answer.is_report { REPORT } else { POINT };
    let in_time = answers
        .iter()
        .filter(|answer| answer.status == 200 && (from..=span).contains(&answer.ended));
    let done: Duration = in_time.map(work).sum();
    let refused = later().filter(|answer| answer.status == 503).count();
    Ok(HttpFigures {
        point_p99_us: p99_us(false),
        report_p99_us: p99_us(true),
        goodput: done.as_secs_f64() / (client::CORES * measured.as_secs_f64()),
        refused: refused as f64 / later().count() as f64,
    })
}

/// In words where more than one in a hundred was never answered.
fn latency(us: f64) -> String {
    if us.is_finite() {
        format!("{us:.0}")
    } else {
        "not answered".to_owned()
    }
}

fn print_table(load: f64, ways: &[Way], rounds: &[Vec<HttpFigures>]) {
    println!("HTTP, load {load} of two cores: medians");
    println!(
        "  {:24} {:>16} {:>16} {:>10} {:>10}",
        "", "/point p99, µs", "/report p99, µs", "goodput", "refused"
    );
    for (way, rounds) in ways.iter().zip(rounds) {
        let median = |figure: fn(&HttpFigures) -> f64| {
            quantile(&rounds.iter().map(figure).collect::<Vec<_>>(), 0.5)
        };
        println!(
            "  {:24} {:>16} {:>16} {:>10.3} {:>10.3}",
            way.name(),
            latency(median(|it| it.point_p99_us)),
            latency(median(|it| it.report_p99_us)),
            median(|it| it.goodput),
            median(|it| it.refused)
        );
    }
    println!();
}
