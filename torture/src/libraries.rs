//! Libraries of others that keep something for each thread.

use std::collections::HashSet;
use std::process::Command;
use std::sync::{LazyLock, Mutex};
use std::time::Duration;

use headway::on_own_thread;
use rand::RngExt;
use regex::Regex;

use crate::ways;
use crate::ways::{expect, work};

ways![
    rand_tokens,
    rand_shuffles,
    tokio_block_on,
    tokio_runtime_of_all,
    tokio_guard,
    tokio_sleep,
    tracing_span,
    tracing_spans_within,
    tracing_subscriber_of_a_scope,
    regex_of_all,
    regex_captures,
    own_thread,
    child_process,
    allocations,
];

/// A token goes to one request alone.
fn rand_tokens(seed: u64) {
    static GIVEN: LazyLock<Mutex<HashSet<u64>>> = LazyLock::new(Mutex::default);
    let mut generator = rand::rng();
    let tokens: Vec<u64> = (0..8)
        .map(|_| {
            work(seed);
            generator.random()
        })
        .collect();
    let Ok(mut given) = GIVEN.lock() else {
        return expect(false);
    };
    if given.len() < 1_000_000 {
        expect(tokens.into_iter().all(|token| given.insert(token)));
    }
}

fn rand_shuffles(seed: u64) {
    let mut numbers: Vec<u64> = (0..32).collect();
    for at in (1..numbers.len()).rev() {
        numbers.swap(at, rand::rng().random_range(0..=at));
        if at % 8 == 0 {
            work(seed);
        }
    }
    expect(numbers.iter().sum::<u64>() == 31 * 32 / 2);
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
        .expect("a runtime")
}

async fn steps(seed: u64) -> u64 {
    for _ in 0..4 {
        work(seed);
        tokio::task::yield_now().await;
    }
    seed
}

/// Each request enters a runtime of its own, and is interrupted there.
fn tokio_block_on(seed: u64) {
    let runtime = runtime();
    let answer = runtime.block_on(async {
        let task = tokio::spawn(steps(seed));
        work(seed);
        task.await
    });
    expect(answer.is_ok_and(|answer| answer == seed));
}

/// All enter the same: one of them drives it at a time.
fn tokio_runtime_of_all(seed: u64) {
    static RUNTIME: LazyLock<tokio::runtime::Runtime> = LazyLock::new(runtime);
    expect(RUNTIME.block_on(steps(seed)) == seed);
}

fn tokio_guard(seed: u64) {
    let runtime = runtime();
    let entered = runtime.enter();
    let me = tokio::runtime::Handle::current().id();
    work(seed);
    expect(tokio::runtime::Handle::current().id() == me);
    drop(entered);
    work(seed);
    expect(tokio::runtime::Handle::try_current().is_err());
}

fn tokio_sleep(seed: u64) {
    if seed.is_multiple_of(8) {
        runtime().block_on(async {
            work(seed);
            tokio::time::sleep(Duration::from_micros(100)).await;
            work(seed);
        });
    }
}

/// One subscriber for all, which keeps a stack of spans for each thread.
fn subscribed() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        tracing::subscriber::set_global_default(tracing_subscriber::registry()).expect("the first")
    });
}

fn tracing_span(seed: u64) {
    subscribed();
    let span = tracing::info_span!("request", seed);
    let entered = span.enter();
    work(seed);
    expect(tracing::Span::current().id() == span.id());
    drop(entered);
    work(seed);
    expect(tracing::Span::current().is_none());
}

fn tracing_spans_within(seed: u64) {
    subscribed();
    let outer = tracing::info_span!("outer", seed);
    outer.in_scope(|| {
        for _ in 0..3 {
            let inner = tracing::info_span!("inner", seed);
            inner.in_scope(|| {
                work(seed);
                expect(tracing::Span::current().id() == inner.id());
            });
            work(seed);
            expect(tracing::Span::current().id() == outer.id());
        }
    });
}

fn tracing_subscriber_of_a_scope(seed: u64) {
    subscribed();
    tracing::subscriber::with_default(tracing::subscriber::NoSubscriber::default(), || {
        let span = tracing::info_span!("unseen", seed);
        work(seed);
        expect(span.is_none());
    });
    work(seed);
    expect(!tracing::info_span!("seen", seed).is_none());
}

static WORDS: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"(?:request|call) (\d+)(?: of (\w+))?").expect("an expression"));

/// A pool of caches whose first user owns one by the number of its thread.
fn regex_of_all(seed: u64) {
    let text = format!("a call {seed} of nobody, and request {seed}");
    let mut found = 0;
    for matched in WORDS.find_iter(&text) {
        work(seed);
        found += matched.len();
    }
    expect(found == format!("call {seed} of nobodyrequest {seed}").len());
}

fn regex_captures(seed: u64) {
    let text = format!("request {seed} of somebody");
    let captures = WORDS.captures(&text);
    work(seed);
    let captures = captures
        .as_ref()
        .and_then(|captures| Some((captures.get(1)?, captures.get(2)?)));
    expect(captures.is_some_and(|(number, name)| {
        number.as_str() == seed.to_string() && name.as_str() == "somebody"
    }));
}

fn own_thread(seed: u64) {
    let me = std::thread::current().id();
    work(seed);
    let there = on_own_thread(|| {
        work(seed);
        std::thread::current().id()
    });
    work(seed);
    expect(there == me);
}

fn child_process(seed: u64) {
    if seed.is_multiple_of(16) {
        let child = Command::new("echo").arg(seed.to_string()).output();
        work(seed);
        expect(child.is_ok_and(|output| output.stdout == format!("{seed}\n").into_bytes()));
    }
}

fn allocations(seed: u64) {
    let mut texts = Vec::new();
    for number in 0..32 {
        texts.push(format!(
            "{} of a text that grows {}",
            seed + number,
            "x".repeat(number as usize * 40)
        ));
        if number % 8 == 0 {
            work(seed);
        }
    }
    expect((0..32).all(|number| texts[number as usize].starts_with(&(seed + number).to_string())));
}
