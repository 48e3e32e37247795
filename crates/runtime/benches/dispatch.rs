//! The cost of an empty request: dispatcher, worker and back, through the replay datapath.
//!
//! All requests are due at once, so the dispatcher never waits for the schedule; it gets as many as a window has room for. A virtual machine's two cores are near each
//! other in one second and far in the next, and a cache line's way takes six times as long: every time is set against a cache line's
//! way measured just before and just after it, and counts only where these two agree.

mod common;
mod floor;
mod window;

use std::time::Duration;

use common::{bounce, median};
use floor::{by_reference, by_value, two_readings};
use headway_machine::Clock;
use headway_net::replay::{Replay, ReplayArrival};
use headway_policy::server::role::Ingress;
use headway_policy::{ClassId, Job, JobId, Shape, server::systems};
use headway_runtime::{Call, Idle, Layout, Server};
use window::{WINDOW, Windowed};

const ROUNDS: usize = 25;
const REQUESTS: u32 = 100_000;

/// Two ways of a cache line that differ by less are the same distance.
const AGREEMENT: f64 = 0.15;

/// One measured thing, and what a cache line took meanwhile; ns.
struct Series {
    name: &'static str,
    times: Vec<f64>,
    /// By the least: a line there and back, and one decision.
    ratios: Vec<f64>,
}

fn main() {
    let clock = Clock::global();
    let mut series: Vec<Series> = [
        "two readings of the clock",
        "by value, worker's clock",
        "by value, own clock too",
        "by reference, no decision",
        "c-fcfs",
        "darc",
        "jbsq,k=8",
        "jbsq,k=16",
        "jbsq,k=64",
        "inline",
    ]
    .map(|name| Series {
        name,
        times: Vec::new(),
        ratios: Vec::new(),
    })
    .into();
    let (mut lines, mut decisions) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut before = bounce(&clock);
        for Series {
            name,
            times,
            ratios,
        } in &mut series
        {
            let decision = decision(&clock);
            let time = measure(name, &clock);
            let after = bounce(&clock);
            if (after / before - 1.0).abs() < AGREEMENT {
                times.push(time);
                ratios.push(time / (f64::midpoint(before, after) + decision));
            }
            lines.push(after);
            decisions.push(decision);
            before = after;
        }
    }
    println!(
        "empty requests, medians of {ROUNDS} interleaved rounds of {REQUESTS}\n\
         a cache line there and back: {:.1} ns; one decision (c-fcfs): {:.1} ns; ratios are to their sum\n",
        median(&mut lines),
        median(&mut decisions)
    );
    for Series {
        name,
        times,
        ratios,
    } in &mut series
    {
        if times.is_empty() {
            println!("{name:<26} the cores moved in every round: run it again");
            continue;
        }
        let time = median(times);
        println!(
            "{name:<26} {time:7.1} ns {:6.2} M/s {:5.2} × ({} rounds)",
            1e3 / time,
            median(ratios),
            ratios.len()
        );
    }
}

/// ns for one of the named things.
fn measure(name: &str, clock: &Clock) -> f64 {
    match name {
        "two readings of the clock" => two_readings(clock),
        "by value, worker's clock" => by_value(clock, false),
        "by value, own clock too" => by_value(clock, true),
        "by reference, no decision" => by_reference(clock),
        "inline" => request("c-fcfs", 1, Layout::Inline),
        policy => request(policy, 1, Layout::Dedicated),
    }
}

/// ns per request of a whole run.
fn request(policy: &str, workers: usize, layout: Layout) -> f64 {
    let schedule = (0..REQUESTS)
        .map(|index| ReplayArrival {
            at_ns: 0,
            service_ns: 0,
            index,
            class: 0,
        })
        .collect();
    let (datapath, control) = Replay::new(vec![schedule]).expect("the schedule is in order");
    let server = Server::builder()
        .policy(policy)
        .class("empty", Duration::from_nanos(100))
        .workers(workers)
        .layout(layout)
        .idle(Idle::Spin)
        .slots(4 * WINDOW)
        .service(|_: &mut Call<'_>| {})
        .datapath(Windowed(datapath))
        .start()
        .expect("the server starts");
    control.start(Clock::global().now_ns());
    while control.taken() < control.total() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let stats = server
        .shutdown(Duration::from_secs(10))
        .expect("the server stops");
    assert_eq!(stats.answered, u64::from(REQUESTS), "{policy} {stats:?}");
    let last = control
        .take_completions()
        .iter()
        .map(|done| done.latency_ns)
        .max();
    last.expect("there were requests") as f64 / f64::from(REQUESTS)
}

/// ns for a request's way through the policy, everything in the cache.
fn decision(clock: &Clock) -> f64 {
    let shape = Shape::new(1).class(100, 1.0);
    let mut ingress = systems::c_fcfs(&shape).ingress;
    let start_ns = clock.now_ns();
    for now_ns in 0..u64::from(REQUESTS) {
        let job = Job::new(JobId((now_ns % 64) as u32), ClassId(0), now_ns);
        ingress
            .arrived(now_ns, std::hint::black_box(job))
            .expect("there is room");
        let dispatch = ingress.poll(now_ns).expect("the worker is idle");
        ingress.finished(now_ns, dispatch.worker, dispatch.job, 0);
    }
    (clock.now_ns() - start_ns) as f64 / f64::from(REQUESTS)
}
