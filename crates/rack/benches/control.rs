//! The control plane's share of its interval, for 32 servers and 64 types: every look, and a look that lays the rack out anew. Scoring
//! is left out, since it runs in a thread of its own.

use criterion::{Criterion, criterion_group, criterion_main};
use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, ControlPlane, ControlRules, DemandReading, Shaper, Turns};
use headway_rack::{RackControl, SwitchTables};
use std::sync::Arc;

const SERVERS: usize = 32;
const CORES: usize = 16;
const TYPES: usize = 64;
const INTERVAL_NS: u64 = 10_000_000;
/// One less than the groups of every layout.
const GROUPS: usize = 7;

/// 1 µs to 0.6 ms.
fn mean_ns(class: usize) -> f64 {
    1e3 * 1.107f64.powi(class as i32)
}

/// A rack with its registers.
struct Rack {
    control: RackControl,
    tables: Arc<SwitchTables>,
    shaper: Shaper,
    generation: u64,
    readings: Vec<DemandReading>,
    rounds: u64,
}

impl Rack {
    fn new() -> Self {
        let hints: Vec<_> = (0..TYPES)
            .map(|class| ClassHint::new(mean_ns(class), 1.0 / TYPES as f64))
            .collect();
        let mut control = ControlPlane::new(&[CORES; SERVERS], &hints, ControlRules::default());
        let scores: Vec<f64> = (0..control.candidates().len()).map(|n| n as f64).collect();
        control.choose(&scores);
        let tables = Arc::new(SwitchTables::new(TYPES));
        let readings = (0..=TYPES).map(|class| DemandReading {
            count: 0,
            execution_ns: mean_ns(class) as u64,
        });
        Self {
            control: RackControl::new(control, Arc::clone(&tables)),
            tables,
            shaper: Shaper::new(TYPES, SERVERS * CORES, Turns::Even, Cloning::Off, 1),
            generation: 0,
            readings: readings.collect(),
            rounds: 0,
        }
    }

    /// Simulates an interval in which this half of the types is busier.
    fn arrive(&mut self, busy_half: usize) {
        for (class, reading) in self.readings.iter_mut().take(TYPES).enumerate() {
            let is_busy = class * 2 / TYPES == busy_half;
            reading.count += if is_busy { 400 } else { 40 };
        }
        self.tables.set_readings(&self.readings);
    }

    /// Looks and, where the look asks for a new layout, publishes it and installs it at the switch. Returns whether it did.
    fn round(&mut self) -> bool {
        self.rounds += 1;
        let Some(task) = self.control.look(INTERVAL_NS) else {
            return false;
        };
        let candidates = task.control.candidates().len();
        let scores: Vec<f64> = (0..candidates).map(|n| n.abs_diff(GROUPS) as f64).collect();
        self.control.scored(&scores);
        self.generation = self.tables.install(self.generation, &mut self.shaper);
        true
    }
}

fn rounds(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("control");
    let mut rack = Rack::new();
    group.bench_function("a look", |bencher| {
        // The same demand for ever: nothing moves.
        bencher.iter(|| {
            rack.arrive(0);
            rack.round()
        });
    });
    let (mut rack, mut half) = (Rack::new(), 0);
    let mut laid_out = 0u64;
    group.bench_function("a look, a new layout, its tables", |bencher| {
        bencher.iter(|| {
            // Demand moves back and forth.
            half = 1 - half;
            rack.arrive(half);
            laid_out += u64::from(rack.round());
        });
    });
    assert!(laid_out > 0, "no round laid the rack out anew");
    println!("{laid_out} of {} rounds laid out anew", rack.rounds);
}

criterion_group!(benches, rounds);
criterion_main!(benches);
