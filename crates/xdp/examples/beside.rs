//! `make bench-rack`: the switch in the kernel and the one in user space beside the paths that they are compared with, in network namespaces.
//!
//! A client asks four servers, which answer at once. All five are one thread, and the kernel's paths run on its CPU: no figure contains a wake-up.
//! Relay and user-space switch have the other CPU. Rounds take turns among the paths, so that a slow moment of the machine meets all of them.
//! Figures are medians over rounds, ratios those of the same round.

#[path = "../tests/common/net.rs"]
mod net;
#[path = "beside/paths.rs"]
mod paths;

use headway_net::header::{Flag, Header};
use paths::{Open, PATHS, Path, Rack};
use std::time::{Duration, Instant};

const ROUNDS: usize = 15;
/// Requests one after the other, in each round.
const TRIPS: usize = 1_500;
/// Requests under way when packets are counted.
const WINDOW: usize = 64;
const FLOOD: Duration = Duration::from_millis(200);
/// A response that takes longer is lost.
const PATIENCE: Duration = Duration::from_secs(2);

fn main() {
    if let Some(why) = net::missing() {
        println!("SKIPPED bench-rack: {why}");
        return;
    }
    let objects = match headway_xdp::compile() {
        Ok(objects) => objects,
        Err(error) => {
            println!("SKIPPED bench-rack: {error}");
            return;
        }
    };
    let rack = Rack::build();
    let mut figures: Vec<Vec<Figure>> = PATHS.iter().map(|_| Vec::new()).collect();
    for _ in 0..rounds() {
        for (path, figures) in PATHS.iter().zip(&mut figures) {
            let to = rack.open(*path, &objects.rack);
            // An interface that gets or loses a program stops for a moment.
            std::thread::sleep(Duration::from_millis(50));
            figures.push(measure(&rack, &to));
        }
    }
    tell(&figures);
}

fn rounds() -> usize {
    let asked = std::env::var("HEADWAY_ROUNDS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(ROUNDS)
}

/// One path in one round.
struct Figure {
    median_us: f64,
    per_second: f64,
}

fn request(index: u32) -> [u8; 10] {
    let header = Header {
        class: 0,
        flag: Flag::REQUEST,
        index,
        time_ns: 0,
    };
    header.encode()
}

fn measure(rack: &Rack, to: &Open) -> Figure {
    while rack.ends(to.path).client.recv(&mut [0; 64]).is_ok() {}
    let mut trips = Vec::with_capacity(TRIPS);
    for index in 0..TRIPS {
        let begun = Instant::now();
        ask(rack, to, index as u32);
        while hear(rack, to, begun) == 0 {}
        trips.push(begun.elapsed().as_nanos() as f64 / 1e3);
    }
    Figure {
        median_us: median(&mut trips),
        per_second: flood(rack, to),
    }
}

/// Responses per second with [`WINDOW`] requests under way.
fn flood(rack: &Rack, to: &Open) -> f64 {
    let (begun, mut answered, mut sent) = (Instant::now(), 0, 0);
    while begun.elapsed() < FLOOD {
        while sent < answered + WINDOW {
            ask(rack, to, sent as u32);
            sent += 1;
        }
        answered += hear(rack, to, Instant::now());
    }
    let per_second = answered as f64 / begun.elapsed().as_secs_f64();
    let last = Instant::now();
    while answered < sent {
        answered += hear(rack, to, last);
    }
    per_second
}

fn ask(rack: &Rack, to: &Open, index: u32) {
    let sent = rack
        .ends(to.path)
        .client
        .send_to(&request(index), to.address);
    sent.unwrap_or_else(|error| panic!("{}: not sent: {error}", to.path.name()));
}

/// Answers the servers' requests, and returns the client's number of responses. None may be lost.
fn hear(rack: &Rack, to: &Open, since: Instant) -> usize {
    let ends = rack.ends(to.path);
    ends.serve();
    let mut heard = 0;
    while ends.client.recv(&mut [0; 64]).is_ok() {
        heard += 1;
    }
    let name = to.path.name();
    assert!(since.elapsed() < PATIENCE, "{name}: no response");
    heard
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn tell(figures: &[Vec<Figure>]) {
    let over = |path: usize, base: usize, figure: fn(&Figure) -> f64| {
        let pairs = figures[path].iter().zip(&figures[base]);
        let mut ratios: Vec<f64> = pairs.map(|(own, of)| figure(own) / figure(of)).collect();
        median(&mut ratios)
    };
    println!(
        "| path | round trip, µs | beyond a wire, µs | × nftables | × relay | requests/s | × nftables |"
    );
    println!("|---|---|---|---|---|---|---|");
    let at = |path| {
        PATHS
            .iter()
            .position(|other| *other == path)
            .expect("a path")
    };
    let (wire, nftables, relay) = (at(Path::Wire), at(Path::Nftables), at(Path::Relay));
    for (number, path) in PATHS.iter().enumerate() {
        let of = |figure: fn(&Figure) -> f64| {
            median(&mut figures[number].iter().map(figure).collect::<Vec<_>>())
        };
        let pairs = figures[number].iter().zip(&figures[wire]);
        let mut beyond: Vec<f64> = pairs
            .map(|(own, wire)| own.median_us - wire.median_us)
            .collect();
        println!(
            "| {} | {:.1} | {:.1} | {:.2} | {:.2} | {:.0} | {:.2} |",
            path.name(),
            of(|figure| figure.median_us),
            median(&mut beyond),
            over(number, nftables, |figure| figure.median_us),
            over(number, relay, |figure| figure.median_us),
            of(|figure| figure.per_second),
            over(number, nftables, |figure| figure.per_second),
        );
    }
}
