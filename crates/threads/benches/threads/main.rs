//! The cost of threads in user space, on one core, beside peers: programs given as `--peer NAME=PROGRAM`, which `make bench-threads` builds. Figures
//! are medians of interleaved rounds; other arguments are parts of the names of the rows.
#![expect(
    unsafe_code,
    reason = "promises that threads may change kthreads: none uses a thread-local variable of std"
)]

mod peer;

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use headway_machine::thread::pin_current;
use headway_threads::{Condvar, Migration, Mutex, ReadCell, Runtime, spawn, yield_now};

use peer::Peer;

/// Rounds of each measurement.
const ROUNDS: usize = 21;
const MANY: u32 = 500_000;

/// One round, in a thread of a runtime: nanoseconds each.
type Measure = fn() -> f64;

struct Row {
    name: &'static str,
    /// The peers' name of it, if they have it.
    operation: Option<&'static str>,
    kthreads: usize,
    measure: Measure,
}

const fn row(
    name: &'static str,
    operation: Option<&'static str>,
    kthreads: usize,
    measure: Measure,
) -> Row {
    Row {
        name,
        operation,
        kthreads,
        measure,
    }
}

const ROWS: [Row; 8] = [
    row("uncontended mutex", Some("mutex"), 1, uncontended_mutex),
    row("yield ping-pong", Some("yield"), 1, yield_ping_pong),
    row("condvar ping-pong", Some("condvar"), 1, condvar_ping_pong),
    row("spawn + join", Some("spawn"), 1, spawn_join),
    row("read of a read-mostly cell", None, 1, read_cell),
    row("yield, 2 kthreads", None, 2, yield_ping_pong),
    row("condvar, 2 kthreads", None, 2, condvar_ping_pong),
    row("spawn, 2 kthreads", None, 2, spawn_join),
];

fn main() {
    let mut peers = Vec::new();
    let mut parts = Vec::new();
    // Peers inherit the core.
    if let Err(error) = pin_current(0) {
        eprintln!("the processes stay unpinned: {error}");
    }
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if argument == "--peer" {
            let peer = arguments.next().expect("--peer NAME=PROGRAM");
            peers.push(Peer::start(&peer));
        } else if !argument.starts_with("--") {
            parts.push(argument);
        }
    }
    let named = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    let rows: Vec<_> = ROWS.into_iter().filter(|row| named(row.name)).collect();
    let mut times = vec![vec![Vec::new(); 1 + peers.len()]; rows.len()];
    let runtimes = [1, 2].map(|kthreads| {
        let cores: Vec<_> = (0..kthreads).collect();
        // SAFETY: no thread uses a thread-local variable of `std`.
        let migration = unsafe { Migration::allow() };
        let builder = Runtime::builder().kthreads(kthreads, migration);
        builder.pin(&cores).start().expect("kthreads")
    });
    for _ in 0..ROUNDS {
        for (row, times) in rows.iter().zip(&mut times) {
            times[0].push(runtimes[row.kthreads - 1].run(row.measure));
            for (peer, times) in peers.iter_mut().zip(&mut times[1..]) {
                times.extend(row.operation.map(|operation| peer.measure(operation)));
            }
        }
    }
    println!("threads, median of {ROUNDS} interleaved rounds");
    for (row, times) in rows.iter().zip(&mut times) {
        let own = median(&mut times[0]);
        print!("  {:<28} {own:8.1} ns (least {:.1})", row.name, times[0][0]);
        for (peer, times) in peers.iter().zip(&mut times[1..]) {
            if !times.is_empty() {
                let theirs = median(times);
                print!("   {} {theirs:.1} (× {:.1})", peer.name(), theirs / own);
            }
        }
        println!();
    }
}

/// The median, once the times are sorted.
fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

/// The time of each of `count` calls.
fn each(count: u32, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_nanos() as f64 / f64::from(count)
}

fn yield_ping_pong() -> f64 {
    let other = spawn(|| (0..MANY / 2).for_each(|_| yield_now()));
    each(MANY, || {
        (0..MANY / 2).for_each(|_| yield_now());
        other.join().expect("it does not panic");
    })
}

fn spawn_join() -> f64 {
    each(MANY, || {
        for number in 0..MANY {
            let sum = spawn(move || number + 1).join();
            black_box(sum.expect("it does not panic"));
        }
    })
}

fn uncontended_mutex() -> f64 {
    let mutex = Mutex::new(0_u32);
    each(MANY, || {
        for _ in 0..MANY {
            *black_box(&mutex).lock() += 1;
        }
    })
}

fn read_cell() -> f64 {
    let cell = ReadCell::new(1_u32);
    each(MANY, || {
        for _ in 0..MANY {
            black_box(black_box(&cell).read(|value| *value));
        }
    })
}

/// Two threads that take turns: each waits for the other's turn to end.
fn condvar_ping_pong() -> f64 {
    fn play(game: &(Mutex<bool>, Condvar), mine: bool) {
        let mut turn = game.0.lock();
        for _ in 0..MANY / 2 {
            while *turn != mine {
                turn = game.1.wait(turn);
            }
            *turn = !mine;
            game.1.notify_one();
        }
    }
    let game = Arc::new((Mutex::new(true), Condvar::new()));
    let other = spawn({
        let game = Arc::clone(&game);
        move || play(&game, false)
    });
    each(MANY, || {
        play(&game, true);
        other.join().expect("it does not panic");
    })
}
