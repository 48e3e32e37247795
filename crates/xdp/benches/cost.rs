//! The program's cost per packet, beside a program that only sends the packet back. The bound is 1.8 times as much.
//!
//! `HEADWAY_XDP_ROUNDS=101 cargo bench -p headway-xdp --bench cost` measures for longer and prints the table of docs/xdp.md. It needs root.

#[path = "../tests/common/mod.rs"]
mod common;

use common::{cost, objects, stay_on_cpu};

const ROUNDS: usize = 9;

fn main() {
    let Some(objects) = objects("cost of a packet") else {
        return;
    };
    let asked = std::env::var("HEADWAY_XDP_ROUNDS").ok();
    let rounds = asked.map_or(ROUNDS, |text| {
        text.parse().expect("HEADWAY_XDP_ROUNDS: a number")
    });
    stay_on_cpu(0);
    println!(
        "| mode | ns a request | bare, same run | beyond it | × bare |\n|---|---|---|---|---|"
    );
    for cost in cost::costs(&objects, rounds) {
        let cost::Cost {
            mode,
            switch_ns,
            bare_ns,
        } = cost;
        let beyond_ns = switch_ns - bare_ns;
        let ratio = switch_ns / bare_ns;
        println!("| {mode} | {switch_ns:.0} | {bare_ns:.0} | {beyond_ns:.0} | {ratio:.1} |");
    }
}
