//! A server under `shinjuku-sq`, which interrupts a request that has run for 50 µs while others wait. The handler says where: at its checkpoints.
//!
//! `cargo run -p headway-examples --bin checkpoints` prints the address it listens on and serves until its standard input ends. A request of type 0
//! is answered at once. One of type 1 has a number in its payload, and is answered with how many primes are below it.

use headway::prelude::*;
use std::error::Error;
use std::time::Duration;

/// How many primes are below `end`. Each round of the outer loop takes at most some microseconds, so one checkpoint in each is enough.
fn primes_below(end: u32) -> usize {
    let mut primes: Vec<u32> = Vec::new();
    for number in 2..end {
        // A load and a branch, unless the dispatcher has asked this request to yield.
        checkpoint();
        let mut candidates = primes.iter().take_while(|prime| *prime * *prime <= number);
        if !candidates.any(|prime: &u32| number % prime == 0) {
            primes.push(number);
        }
    }
    primes.len()
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .policy("shinjuku-sq,q=50us")
        .class("ping", Duration::from_micros(1)) // type 0
        .class("count", Duration::from_millis(5)) // type 1
        .workers(1)
        .handler(|call| match call.class().0 {
            0 => call.reply(b"pong"),
            1 => {
                let number = std::str::from_utf8(call.payload()).ok();
                match number.and_then(|number| number.parse().ok()) {
                    Some(end) => call.reply(primes_below(end).to_string().as_bytes()),
                    None => call.bad_request(),
                }
            }
            _ => call.bad_request(),
        })
        .listen_udp("127.0.0.1:0".parse()?)
        .start()?;
    println!("{}", server.local_addr().expect("it listens"));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let stats = server.shutdown(Duration::from_secs(10))?;
    println!(
        "answered {}, interrupted {}",
        stats.answered, stats.preemptions
    );
    Ok(())
}
