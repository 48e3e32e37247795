//! A server that is all that its process does: `Server::run` serves until SIGTERM, drains, and says what it did.
//!
//! `cargo run -p headway-whole-example` says where it listens. `headway ctl status` and `headway top` find it; Prometheus finds it at the
//! printed address.

use headway::prelude::*;
use std::error::Error;
use std::time::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .policy("darc")
        .class("ping", Duration::from_micros(1)) // type 0
        .class("sum", Duration::from_micros(100)) // type 1
        .workers(2)
        .metrics("127.0.0.1:0".parse()?)
        .handler(|call| match call.payload() {
            b"ping" => call.reply(b"pong"),
            b"sum" => call.reply((1..=100_000_u64).sum::<u64>().to_string().as_bytes()),
            _ => call.bad_request(),
        })
        .listen_udp("127.0.0.1:0".parse()?)
        .start()?;
    println!("{}", server.local_addr().expect("it listens"));
    println!("{}", server.metrics_addr().expect("it answers Prometheus"));
    server.run()?;
    Ok(())
}
