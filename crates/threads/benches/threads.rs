//! What threads in user space cost, on one core. Figures are medians of interleaved rounds; arguments are parts of the names of the rows.

use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

use headway_threads::{Condvar, Mutex, Runtime, spawn, yield_now};

/// Rounds of each measurement.
const ROUNDS: usize = 21;
const MANY: u32 = 500_000;

/// One round, in a thread of a runtime: nanoseconds each.
type Measure = fn() -> f64;

const ROWS: [(&str, Measure); 4] = [
    ("uncontended mutex", uncontended_mutex),
    ("condvar ping-pong", condvar_ping_pong),
    ("yield ping-pong", yield_ping_pong),
    ("spawn + join", spawn_join),
];

fn main() {
    let parts: Vec<String> = std::env::args()
        .skip(1)
        .filter(|part| !part.starts_with("--"))
        .collect();
    let named = |name: &str| parts.is_empty() || parts.iter().any(|part| name.contains(part));
    let rows: Vec<_> = ROWS.into_iter().filter(|(name, _)| named(name)).collect();
    let mut rounds = vec![Vec::new(); rows.len()];
    let runtime = Runtime::builder().pin(&[0]).start().expect("a kthread");
    for _ in 0..ROUNDS {
        for ((_, measure), times) in rows.iter().zip(&mut rounds) {
            times.push(runtime.run(measure));
        }
    }
    println!("threads on one core, median of {ROUNDS} interleaved rounds");
    for ((name, _), times) in rows.iter().zip(&mut rounds) {
        times.sort_by(f64::total_cmp);
        println!(
            "  {name:<30} {:6.1} ns (least {:.1})",
            times[ROUNDS / 2],
            times[0]
        );
    }
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

/// Two threads, each of which waits for the other one's turn to end.
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
