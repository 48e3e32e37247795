//! A server that finds all its requests waiting: one worker and a dispatcher, through the replay datapath. And what requests compute.

use std::hint::black_box;
use std::time::Duration;

use headway_machine::Clock;
use headway_net::replay::{Replay, ReplayArrival};
use headway_runtime::{Call, Idle, Layout, Server, checkpoint};

/// How a run went.
pub(crate) struct Served {
    /// Until all requests were answered, ns.
    pub(crate) whole_ns: f64,
    /// How often one was interrupted.
    pub(crate) preemptions: f64,
}

/// Serves `requests` requests under the policy, each by one call of `handler`.
pub(crate) fn serve(
    policy: &str,
    requests: u32,
    service_ns: u64,
    handler: impl Fn() + Send + Sync + 'static,
) -> Served {
    let schedule = (0..requests)
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
        .class("work", Duration::from_nanos(service_ns))
        .workers(1)
        .layout(Layout::Dedicated)
        .idle(Idle::Spin)
        .service(move |_: &mut Call<'_>| handler())
        .datapath(datapath)
        .start()
        .expect("the server starts");
    control.start(Clock::global().now_ns());
    while control.taken() < control.total() {
        std::thread::sleep(Duration::from_millis(1));
    }
    let stats = server
        .shutdown(Duration::from_secs(10))
        .expect("the server stops");
    assert_eq!(stats.answered, u64::from(requests));
    // All arrived at the start.
    let latencies = control.take_completions();
    let whole_ns = latencies.iter().map(|done| done.latency_ns).max();
    Served {
        whole_ns: whole_ns.expect("requests were answered") as f64,
        preemptions: stats.preemptions as f64,
    }
}

/// Runs this many iterations of a loop that the compiler cannot shorten, with a probe in each: some tens of ns, as the compiler pass places them.
pub(crate) fn work(turns: u64) {
    let mut state = turns;
    for _ in 0..turns {
        state = turn(state);
        checkpoint();
    }
    black_box(state);
}

/// A turn of [`work`] without its probe.
#[inline(always)]
pub(crate) fn turn(mut state: u64) -> u64 {
    for _ in 0..8 {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005) | 1);
    }
    state
}

/// The time of an iteration, ns: the fastest of several tries.
pub(crate) fn turn_ns() -> f64 {
    const TRY: u64 = 20_000;
    let clock = Clock::global();
    (0..50)
        .map(|_| {
            let start_ns = clock.now_ns();
            work(TRY);
            (clock.now_ns() - start_ns) as f64 / TRY as f64
        })
        .fold(f64::INFINITY, f64::min)
}
