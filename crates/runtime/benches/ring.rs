//! The cost of a ring: on one thread (instructions only), and between two (cache lines).
//!
//! Figures are medians of interleaved rounds: on a shared machine, only those of one run can be compared.

mod common;

use common::{bounce, median, on_two_cores};
use headway_machine::Clock;
use headway_sync::ring::{Consumer, ring};

const WORDS: u64 = 1_000_000;

/// Rounds of each measurement.
const ROUNDS: usize = 7;

fn main() {
    let clock = Clock::global();
    let mut rows: [Vec<f64>; 5] = Default::default();
    for _ in 0..ROUNDS {
        rows[0].push(one_thread(&clock, 1));
        rows[1].push(one_thread(&clock, 16));
        rows[2].push(stream(&clock));
        rows[3].push(there_and_back(&clock));
        rows[4].push(bounce(&clock));
    }
    println!("ring, median of {ROUNDS} interleaved rounds");
    println!(
        "  push + pop, one thread, one by one      {:6.1} ns",
        median(&mut rows[0])
    );
    println!(
        "  push + pop, one thread, 16 at a time    {:6.1} ns",
        median(&mut rows[1])
    );
    println!(
        "  a word from thread to thread, streaming {:6.1} ns",
        median(&mut rows[2])
    );
    println!(
        "  a word there and back                   {:6.1} ns",
        median(&mut rows[3])
    );
    println!(
        "  a cache line there and back             {:6.1} ns",
        median(&mut rows[4])
    );
}

fn one_thread(clock: &Clock, batch: u64) -> f64 {
    let (mut producer, mut consumer) = ring(64);
    let start_ns = clock.now_ns();
    for first in (0..WORDS).step_by(batch as usize) {
        for word in first..first + batch {
            producer
                .push(std::hint::black_box(word))
                .expect("there is room");
        }
        for _ in 0..batch {
            std::hint::black_box(consumer.pop());
        }
    }
    (clock.now_ns() - start_ns) as f64 / WORDS as f64
}

fn stream(clock: &Clock) -> f64 {
    let (mut producer, mut consumer) = ring(1024);
    on_two_cores(
        move || {
            let start_ns = clock.now_ns();
            for _ in 0..WORDS {
                await_word(&mut consumer);
            }
            (clock.now_ns() - start_ns) as f64 / WORDS as f64
        },
        move || {
            for word in 0..WORDS {
                while producer.push(word).is_err() {
                    std::hint::spin_loop();
                }
            }
        },
    )
}

fn there_and_back(clock: &Clock) -> f64 {
    const TRIPS: u64 = 100_000;
    let (mut there, mut arrived) = ring(64);
    let (mut back, mut returned) = ring(64);
    let ask = move || {
        let start_ns = clock.now_ns();
        for word in 0..TRIPS {
            there.push(word).expect("there is room");
            await_word(&mut returned);
        }
        (clock.now_ns() - start_ns) as f64 / TRIPS as f64
    };
    on_two_cores(ask, move || {
        for _ in 0..TRIPS {
            let word = await_word(&mut arrived);
            back.push(word).expect("there is room");
        }
    })
}

fn await_word(consumer: &mut Consumer) -> u64 {
    loop {
        if let Some(word) = consumer.pop() {
            return word;
        }
        std::hint::spin_loop();
    }
}
