//! The live engines in a world where things cost next to nothing, beside the simulator's own engine: the same policy code, the same arrivals.

use headway_machine::Topology;
use headway_machine::thread::pin_current;
use headway_policy::PolicySpec;
use headway_runtime::Layout;
use headway_sim::Experiment;
use headway_workload::{Generator, Workload};
use headway_world::{ServedWorkload, TimedRequest};

/// Policies that differ in who decides and who interrupts, and that place requests alike in both engines.
const POLICIES: [&str; 10] = [
    "c-fcfs",
    "fixed-priority",
    "darc-static",
    "jbsq",
    "concord,q=50us,dispatcher=dedicated",
    "shinjuku-sq,q=50us,cost=0us",
    "srpt,size=profile",
    "drr",
    "edf",
    "tardis",
];

const REQUESTS: u64 = 300;

/// A shape that a seed draws: a policy, workers, classes, a load.
struct Shape {
    policy: PolicySpec,
    name: &'static str,
    workers: usize,
    layout: Layout,
    workload: Workload,
    means_ns: [u64; 2],
    load: f64,
    seed: u64,
}

impl Shape {
    fn of(seed: u64) -> Self {
        let name = POLICIES[(seed % POLICIES.len() as u64) as usize];
        let workers = 1 + (seed / 3 % 4) as usize;
        let means_ns = [20_000 + seed % 7 * 5_000, 300_000 + seed % 5 * 100_000];
        let share = [0.5, 0.8, 0.95][(seed / 7 % 3) as usize];
        let text = format!(
            "name = \"drawn\"\n[[class]]\nname = \"short\"\nshare = {share}\nservice = {{ dist = \"exponential\", mean = \"{}ns\" }}\n\
             [[class]]\nname = \"long\"\nshare = {}\nservice = {{ dist = \"exponential\", mean = \"{}ns\" }}\n",
            means_ns[0],
            1.0 - share,
            means_ns[1]
        );
        Self {
            policy: name.parse().expect("a policy of ours"),
            name,
            workers,
            layout: [Layout::Dedicated, Layout::Inline][(seed / 11 % 2) as usize],
            workload: Workload::from_toml_str(&text, "drawn.toml").expect("a workload"),
            means_ns,
            load: [0.3, 0.5, 0.7][(seed / 5 % 3) as usize],
            seed,
        }
    }

    fn experiment(&self) -> Experiment {
        Experiment::new(self.workload.clone(), self.policy.clone())
            .workers(self.workers)
            .load(self.load)
            .requests(REQUESTS)
            .seed(self.seed)
    }

    /// The mean sojourn of the requests after the first tenth, µs, simulated.
    fn simulated_us(&self) -> f64 {
        let outcome = self.experiment().run().expect("it runs");
        outcome.run.overall.latency_us.mean
    }

    /// The same, live.
    fn live_us(&self) -> f64 {
        let experiment = self.experiment();
        let generator = Generator::new(&experiment.workload, experiment.offered, experiment.seed);
        let arrivals = generator
            .take(REQUESTS as usize)
            .map(|arrival| TimedRequest {
                at_ns: arrival.at_ns,
                class: arrival.class as u8,
                service_ns: arrival.service_ns,
            });
        let served = ServedWorkload {
            policy: self.policy.server().expect("a server's policy").clone(),
            workers: self.workers,
            layout: if self.name == "tardis" {
                Layout::Auto
            } else {
                self.layout
            },
            slots: None,
            room: 1 << 20,
            means_ns: self.means_ns,
            arrivals: arrivals.collect(),
        };
        let sojourns_ns = served
            .sojourns_ns(self.seed)
            .unwrap_or_else(|faults| panic!("{}: {faults:?}", self.name));
        let counted = &sojourns_ns[REQUESTS as usize / 10..];
        counted.iter().flatten().sum::<u64>() as f64 / counted.len() as f64 / 1_000.0
    }
}

#[test]
fn what_is_simulated_is_what_runs() {
    // The worlds' threads inherit the core: they take turns anyway, and a turn that stays on its core is cheap.
    let cores = Topology::read("/sys").map(|topology| topology.pinning_order());
    let _ = cores.unwrap_or_default().last().copied().map(pin_current);
    let mut apart = Vec::new();
    for seed in 1..=50 {
        let shape = Shape::of(seed);
        let (simulated_us, live_us) = (shape.simulated_us(), shape.live_us());
        // A request costs about a microsecond in the world, and nothing in the simulation. That can turn a tie around, which moves the mean of so
        // few requests by a tenth.
        if (live_us - simulated_us).abs() > 5.0 + 0.12 * simulated_us {
            apart.push(format!(
                "seed {seed}: {} on {} workers at {}: live {live_us:.1} µs, simulated {simulated_us:.1} µs",
                shape.name, shape.workers, shape.load
            ));
        }
    }
    assert!(
        apart.is_empty(),
        "{} of 50 shapes:\n{}",
        apart.len(),
        apart.join("\n")
    );
}
