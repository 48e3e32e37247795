//! Prepares the demonstration: fills a store, and measures the service times of its requests in a pilot run.

use crate::commands::demo::entrant::Offer;
use crate::commands::demo::live;
use crate::commands::demo::stage::{KEYS, Stage, VALUE_BYTES};
use crate::interrupt::Interrupt;
use anyhow::{Context, Result};
use headway_kv::{Kv, KvWorkload};
use headway_machine::{MachineDescription, noise};
use headway_policy::server::systems::ServerSpec;
use headway_workload::{Class, ServiceDistribution, Workload};
use std::time::Duration;

/// The target service time of a SCAN on an idle core. It is far above the pauses by ticks and neighbours
/// of a virtual machine. It stays above 2 ms even if the core becomes faster after calibration.
const SCAN: Duration = Duration::from_micros(2_400);
/// Share of the requests that are SCANs. GETs wait as often for any share, since that depends on the
/// load; with a tenth the rate stays so low that the client needs little of the machine.
const SCAN_SHARE: f64 = 0.1;
/// Load of the pilot run: about that of the rounds, so that the service times include the same interference.
const PILOT_LOAD: f64 = 0.4;
/// Number of pilot runs; the median counts. Handlers take longer on a shared machine, and the load must stay within its capacity.
const PILOTS: u64 = 3;
const PILOT: Duration = Duration::from_millis(600);

impl Stage {
    /// Fills a store and measures GETs and SCANs in a server on it.
    pub(crate) fn set(workers: usize, seed: u64, interrupt: &Interrupt) -> Result<Self> {
        let machine = MachineDescription::read().context("cannot describe this machine")?;
        let kv = Kv::filled(KEYS, VALUE_BYTES, seed).context("cannot fill the store")?;
        let scan_entries = kv.calibrate_scan(SCAN)?;
        let (get_ns, scan_ns) = (kv.measure_get()?, kv.measure_scan(scan_entries)?);
        let mut stage = Self {
            machine,
            kv,
            scan_entries,
            workers,
            workload: workload(get_ns, scan_ns),
            noise: noise::NoiseSummary::default(),
            bodies: KvWorkload::new(KEYS, seed).with_scan_entries(scan_entries),
        };
        stage.watch_noise()?;
        stage.measure_in_server(seed, interrupt)?;
        Ok(stage)
    }

    /// Replaces the service times of an idle core by those under load: the client, the dispatcher and the
    /// other workers take their part of caches and cores.
    fn measure_in_server(&mut self, seed: u64, interrupt: &Interrupt) -> Result<()> {
        let offer = Offer {
            rate_rps: self.workload.rate_for_load(PILOT_LOAD, self.workers),
            duration: PILOT,
            seed,
            warm_up: 0.0,
        };
        let policy: ServerSpec = "c-fcfs".parse()?;
        let mut means_ns: [Vec<u64>; 2] = Default::default();
        for pilot in 0..PILOTS {
            let offer = Offer {
                seed: seed.wrapping_add(pilot),
                ..offer
            };
            let stats = live::play(self, &policy, &offer, interrupt)?.stats;
            for (means_ns, class) in means_ns.iter_mut().zip(&stats.classes) {
                let mean_ns = class.mean_cpu_ns();
                let mean_ns =
                    mean_ns.context("the pilot run had no answer to one of its classes")?;
                means_ns.push(mean_ns as u64);
            }
        }
        let [get_ns, scan_ns] = means_ns.map(middle);
        self.workload = workload(get_ns, scan_ns);
        Ok(())
    }
}

fn middle(mut values: Vec<u64>) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

/// The order of the classes is that of the store's operations: the wire header's type says the same.
fn workload(get_ns: u64, scan_ns: u64) -> Workload {
    let constant = |mean_ns| ServiceDistribution::Constant { mean_ns };
    let classes = vec![
        Class::new("GET", 1.0 - SCAN_SHARE, constant(get_ns.max(1))),
        Class::new("SCAN", SCAN_SHARE, constant(scan_ns.max(1))),
    ];
    Workload::new("kv: GET and SCAN", classes)
}
