//! A loop per worker that takes requests in batches and answers them, instead of a function that is called with each.
//!
//! `cargo run -p headway-examples --bin pull` prints the address it listens on and serves until its standard input ends. A request's payload is a number; the answer
//! is the number, and how many requests its loop has served.

use headway::prelude::*;
use std::error::Error;
use std::time::Duration;

/// One worker's loop; `served` is its own and needs no lock.
fn serve(requests: &Requests) {
    let (mut served, mut batch) = (0_u64, Vec::new());
    while let Some(first) = requests.recv() {
        batch.push(first);
        // What the policy begins here meanwhile, if it can suspend what the loop has: concord can.
        batch.extend(std::iter::from_fn(|| requests.recv()).take(7));
        for request in batch.drain(..) {
            served += 1;
            let answer = format!("{} {served}", String::from_utf8_lossy(request.payload()));
            request.reply(answer.as_bytes());
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let server = Server::builder()
        .policy("concord,q=20us")
        .workers(2)
        .pull(serve)
        .listen_udp("127.0.0.1:0".parse()?)
        .start()?;
    println!("{}", server.local_addr().expect("it listens"));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let stats = server.shutdown(Duration::from_secs(10))?;
    println!("answered {}", stats.answered);
    Ok(())
}
