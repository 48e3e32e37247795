//! A server under `darc`: two classes, and no request is interrupted.
//!
//! `cargo run -p headway-examples --bin plain` prints the address it listens on and serves until its standard input ends. A request is the
//! wire header, whose type is the class, and a payload: `get KEY`, or `scan`. docs/wire.md describes the header.

use headway::prelude::*;
use std::collections::BTreeMap;
use std::error::Error;
use std::time::Duration;

/// The service: what all workers share.
struct Words {
    by_key: BTreeMap<String, String>,
}

impl Service for Words {
    fn handle(&self, call: &mut Call<'_>) {
        let request = String::from_utf8_lossy(call.payload()).into_owned();
        match request.split_once(' ') {
            Some(("get", key)) => match self.by_key.get(key) {
                Some(word) => call.reply(word.as_bytes()),
                None => call.fail(),
            },
            None if request == "scan" => {
                let letters: usize = self.by_key.values().map(String::len).sum();
                call.reply(letters.to_string().as_bytes());
            }
            _ => call.bad_request(),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let by_key = (0..1000).map(|key| (key.to_string(), format!("word {key}")));
    let server = Server::builder()
        .policy("darc")
        .class("get", Duration::from_micros(1)) // type 0
        .class("scan", Duration::from_micros(50)) // type 1
        .workers(2)
        .service(Words {
            by_key: by_key.collect(),
        })
        .listen_udp("127.0.0.1:0".parse()?)
        .start()?;
    println!("{}", server.local_addr().expect("it listens"));
    std::io::copy(&mut std::io::stdin(), &mut std::io::sink())?;
    let stats = server.shutdown(Duration::from_secs(10))?;
    println!("answered {}", stats.answered);
    Ok(())
}
