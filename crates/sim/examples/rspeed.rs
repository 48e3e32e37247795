//! speed
#![allow(missing_docs, clippy::all)]
use headway_sim::Experiment;
use headway_workload::Workload;
fn cpu() -> f64 {
    let s = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    s.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
fn main() {
    for policy in std::env::args().skip(1) {
        let e = Experiment::new(
            Workload::named("high-bimodal").unwrap(),
            policy.parse().unwrap(),
        )
        .servers(10)
        .workers(12)
        .load(0.8)
        .requests(std::env::var("N").map_or(1_000_000, |n| n.parse().unwrap()));
        let mut best = f64::MAX;
        let mut p = 0;
        for _ in 0..std::env::var("R").map_or(3, |n| n.parse().unwrap()) {
            let t = cpu();
            let o = e.run().unwrap();
            p = o.run.meta.preemptions;
            best = best.min(cpu() - t);
        }
        println!("{policy}: {:.2} M/s, {p} preemptions", 1.0 / best);
    }
}
