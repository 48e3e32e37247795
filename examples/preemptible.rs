//! A server under `tiny-quanta`, whose workers take turns among their requests every 20 µs. `#[preemptible]` places the checkpoints.
//!
//! `cargo run -p headway-examples --bin preemptible` prints the address it listens on and serves until its standard input ends. A request of
//! type 0 is answered at once. One of type 1 has a number in its payload, and is answered with a sum over a table, computed so many times.

use headway::prelude::*;
use std::error::Error;
use std::sync::Mutex;
use std::time::Duration;

/// What all workers share. The lock is held inside `NoPreempt` sections: a request that was interrupted with it would keep the others
/// of its worker waiting for good.
struct Table {
    values: Vec<u64>,
    sums: Mutex<u64>,
}

impl Table {
    /// Each loop gets a checkpoint: one round in 64 of either, since their rounds are short.
    #[preemptible(every = 64)]
    fn sum(&self, times: u32) -> u64 {
        let mut sum = 0_u64;
        for time in 0..u64::from(times) {
            for value in &self.values {
                sum = sum.wrapping_mul(31).wrapping_add(value ^ time);
            }
        }
        let _section = NoPreempt::enter();
        *self.sums.lock().expect("no holder panics") += 1;
        sum
    }
}

impl Service for Table {
    fn handle(&self, call: &mut Call<'_>) {
        if call.class().0 == 0 {
            return call.reply(b"pong");
        }
        let times = std::str::from_utf8(call.payload()).ok();
        match times.and_then(|times| times.parse().ok()) {
            Some(times) => call.reply(self.sum(times).to_string().as_bytes()),
            None => call.bad_request(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .policy("tiny-quanta,q=20us")
        .class("ping", Duration::from_micros(1)) // type 0
        .class("sum", Duration::from_millis(5)) // type 1
        .workers(1)
        .service(Table {
            values: (0..1000).collect(),
            sums: Mutex::new(0),
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
