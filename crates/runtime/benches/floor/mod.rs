//! The lower bound of handing over a request.

use std::sync::atomic::{AtomicU64, Ordering};

use headway_machine::Clock;
use headway_policy::server::role::Ingress;
use headway_policy::{ClassId, Job, JobId, Shape, server::systems};

use crate::common::on_two_cores;

/// Two readings of the clock, in ns: what measuring a service time costs.
pub(crate) fn two_readings(clock: &Clock) -> f64 {
    const READINGS: u64 = 20_000;
    let start_ns = clock.now_ns();
    for _ in 0..READINGS {
        std::hint::black_box(clock.now_ns());
    }
    2.0 * (clock.now_ns() - start_ns) as f64 / READINGS as f64
}

/// The least that handing a request over by reference can take, in ns: a word to another core, there the line that it names is read and
/// written between two readings of the clock, and a word back. No policy, no loop that looks for anything else.
pub(crate) fn by_reference(clock: &Clock) -> f64 {
    const TRIPS: u64 = 20_000;
    const BUFFERS: u64 = 64;
    #[repr(align(128))]
    struct Line([AtomicU64; 2]);
    let line = || Line([AtomicU64::new(0), AtomicU64::new(0)]);
    let (there, back) = (line(), line());
    let buffers: Vec<Line> = (0..BUFFERS).map(|_| line()).collect();
    let wait_for = |line: &Line, value| {
        while line.0[0].load(Ordering::Acquire) != value {
            std::hint::spin_loop();
        }
    };
    let buffer = |trip: u64| &buffers[(trip % BUFFERS) as usize].0;
    let ask = || {
        buffer(1)[0].store(1, Ordering::Relaxed);
        let start_ns = clock.now_ns();
        for trip in 1..=TRIPS {
            there.0[0].store(trip, Ordering::Release);
            // The next request is written while this one is away.
            buffer(trip + 1)[0].store(trip + 1, Ordering::Relaxed);
            wait_for(&back, trip);
        }
        (clock.now_ns() - start_ns) as f64 / TRIPS as f64
    };
    let answer = || {
        for trip in 1..=TRIPS {
            wait_for(&there, trip);
            let start_ns = clock.now_ns();
            let request = buffer(trip)[0].load(Ordering::Relaxed);
            assert_eq!(request, trip);
            buffer(trip)[1].store(clock.now_ns() - start_ns, Ordering::Relaxed);
            back.0[0].store(trip, Ordering::Release);
        }
    };
    on_two_cores(ask, answer)
}

/// What handing a request over by value takes, in ns, with all that a request asks for and nothing else: one line carries it there and
/// its response back, the policy decides (c-fcfs, as in the server), the worker reads the request, measures the handler between two readings of
/// the clock and writes the response. No receive queue, pool, ring, count or record, and nothing else is looked for.
///
/// The policy gets the time that the worker read last. With `reads_clock` the dispatcher reads the clock, as a dispatcher that may be idle must.
pub(crate) fn by_value(clock: &Clock, reads_clock: bool) -> f64 {
    const TRIPS: u64 = 20_000;
    const TURN: usize = 0;
    const REQUEST: usize = 1;
    const END_NS: usize = 3;
    const CPU_NS: usize = 4;
    #[repr(align(128))]
    struct Line([AtomicU64; 8]);
    let line = &Line(std::array::from_fn(|_| AtomicU64::new(0))).0;
    let put = |word: usize, value| line[word].store(value, Ordering::Relaxed);
    let get = |word: usize| line[word].load(Ordering::Relaxed);
    let wait_for = |turn| {
        while line[TURN].load(Ordering::Acquire) != turn {
            std::hint::spin_loop();
        }
    };
    let mut ingress = systems::c_fcfs(&Shape::new(1).class(100, 1.0)).ingress;
    let ask = move || {
        let start_ns = clock.now_ns();
        let mut now_ns = start_ns;
        for trip in 1..=TRIPS {
            let job = Job::new(JobId((trip % 64) as u32), ClassId(0), now_ns);
            ingress.arrived(now_ns, job).expect("there is room");
            let dispatch = ingress.poll(now_ns).expect("the worker is idle");
            put(REQUEST, trip);
            put(REQUEST + 1, u64::from(dispatch.job.0));
            line[TURN].store(2 * trip - 1, Ordering::Release);
            wait_for(2 * trip);
            now_ns = if reads_clock {
                clock.now_ns()
            } else {
                get(END_NS)
            };
            ingress.finished(now_ns, dispatch.worker, dispatch.job, get(CPU_NS));
        }
        (clock.now_ns() - start_ns) as f64 / TRIPS as f64
    };
    let answer = || {
        for trip in 1..=TRIPS {
            wait_for(2 * trip - 1);
            let start_ns = clock.now_ns();
            let request = std::hint::black_box([get(REQUEST), get(REQUEST + 1)]);
            let end_ns = clock.now_ns();
            put(REQUEST, request[0]);
            put(REQUEST + 1, request[1] | 1 << 32);
            put(END_NS, end_ns);
            put(CPU_NS, end_ns - start_ns);
            line[TURN].store(2 * trip, Ordering::Release);
        }
    };
    on_two_cores(ask, answer)
}
