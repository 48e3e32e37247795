//! What a request costs that does nothing: dispatcher, worker and back, through the replay datapath.
//!
//! All requests are due at once, so the dispatcher never waits for the schedule. Figures are medians of
//! interleaved rounds: on a shared machine, only those of one run can be compared.

mod common;
mod floor;

use std::time::Duration;

use common::{ROUNDS, bounce, median};
use floor::{by_reference, two_readings};
use headway_machine::Clock;
use headway_net::replay::{Replay, ReplayArrival};
use headway_policy::role::Ingress;
use headway_policy::{ClassId, Job, JobId, Shape, systems};
use headway_runtime::{Call, Idle, Layout, Server};

const REQUESTS: u32 = 400_000;

fn main() {
    let clock = Clock::global();
    let policies = ["c-fcfs", "darc", "jbsq,k=8", "jbsq,k=16", "jbsq,k=64"];
    let mut whole: Vec<Vec<f64>> = vec![Vec::new(); policies.len()];
    let (mut lines, mut decisions, mut inline) = (Vec::new(), Vec::new(), Vec::new());
    let (mut readings, mut floors) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        lines.push(bounce(&clock));
        decisions.push(decision(&clock));
        readings.push(two_readings(&clock));
        floors.push(by_reference(&clock));
        for (policy, times) in policies.iter().zip(&mut whole) {
            times.push(request(policy, 1, Layout::Dedicated));
        }
        inline.push(request("c-fcfs", 1, Layout::Inline));
    }
    println!("empty requests, median of {ROUNDS} interleaved rounds of {REQUESTS}");
    let (line, decision) = (median(&mut lines), median(&mut decisions));
    println!("  a cache line there and back        {line:7.1} ns");
    println!("  one decision (c-fcfs)              {decision:7.1} ns");
    let (readings, floor) = (median(&mut readings), median(&mut floors));
    println!("  two readings of the clock          {readings:7.1} ns");
    println!("  handed over by reference, measured {floor:7.1} ns");
    println!(
        "  least by value                     {:7.1} ns  {:4.2} × (lines + decision)",
        line + decision + readings,
        1.0 + readings / (line + decision)
    );
    println!(
        "  least by reference                 {:7.1} ns  {:4.2} × (lines + decision)",
        floor + decision,
        (floor + decision) / (line + decision)
    );
    for (policy, times) in policies.iter().zip(&mut whole) {
        let time = median(times);
        println!(
            "  {policy:<10} one worker, dedicated   {time:7.1} ns  {:5.2} M/s  {:4.2} × (lines + decision)",
            1e3 / time,
            time / (line + decision)
        );
    }
    let time = median(&mut inline);
    println!(
        "  c-fcfs     one worker, inline      {time:7.1} ns  {:5.2} M/s",
        1e3 / time
    );
}

/// ns per request of a whole run.
fn request(policy: &str, workers: usize, layout: Layout) -> f64 {
    let arrival = |index| ReplayArrival {
        at_ns: 0,
        service_ns: 0,
        index,
        class: 0,
    };
    let schedule = (0..REQUESTS).map(arrival).collect();
    let (datapath, control) = Replay::new(vec![schedule]).expect("the schedule is in order");
    let server = Server::builder()
        .policy(policy)
        .class("empty", 100)
        .workers(workers)
        .layout(layout)
        .idle(Idle::Spin)
        .slots(256)
        .queue_limit(256)
        .service(|_: &mut Call<'_>| {})
        .datapath(datapath)
        .start()
        .expect("the server starts");
    control.start(Clock::global().now_ns());
    while control.taken() < control.total() {
        std::thread::sleep(Duration::from_millis(5));
    }
    let stats = server
        .shutdown(Duration::from_secs(10))
        .expect("the server stops");
    assert_eq!(stats.answered, u64::from(REQUESTS));
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
