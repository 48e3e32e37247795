//! A given workload in a world where things cost next to nothing: what the live engines make of it beside an ideal simulation.

use std::time::Duration;

use headway_net::header::Flag;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::{Idle, Layout};

use crate::check;
use crate::network::Datagram;
use crate::play::play;
use crate::random::Random;
use crate::scenario::Scenario;
use crate::scheduler::{CoreCosts, CoreFaults, Watched};

/// A request that comes at a given time.
#[derive(Clone, Copy, Debug)]
pub struct TimedRequest {
    /// When, ns after the start.
    pub at_ns: u64,
    /// 0 or 1.
    pub class: u8,
    /// How long its handler takes, ns.
    pub service_ns: u64,
}

/// A server and what comes to it.
#[derive(Clone, Debug)]
pub struct ServedWorkload {
    /// Of the server.
    pub policy: ServerSpec,
    /// Of the server.
    pub workers: usize,
    /// Of the server.
    pub layout: Layout,
    /// The server's buffers; `None`: as many as its queues need.
    pub slots: Option<usize>,
    /// Datagrams that a receive queue holds at most; the network drops what comes on top.
    pub room: usize,
    /// The classes' mean service times, ns.
    pub means_ns: [u64; 2],
    /// In the order of their times.
    pub arrivals: Vec<TimedRequest>,
}

impl ServedWorkload {
    /// Serves it. From each request's intended arrival to its answer, ns, in the order of the arrivals; `None` for requests without one.
    ///
    /// # Errors
    /// What did not hold, a line each.
    pub fn sojourns_ns(&self, seed: u64) -> Result<Vec<Option<u64>>, Vec<String>> {
        let scenario = self.scenario();
        let outcome = play(&scenario, Watched::default(), Random::new(seed));
        let faults = check::faults(&scenario, &outcome);
        if !faults.is_empty() {
            return Err(faults);
        }
        let fates = outcome.log.fates.iter().zip(&scenario.datagrams);
        Ok(fates
            .map(|(fate, datagram)| {
                let answered_ns = fate.answered_ns.first()?;
                Some(answered_ns.saturating_sub(outcome.start_ns + datagram.at_ns))
            })
            .collect())
    }

    fn scenario(&self) -> Scenario {
        let datagrams = self.arrivals.iter().enumerate();
        let datagrams = datagrams.map(|(delivery, arrival)| Datagram {
            at_ns: LEAD_NS + arrival.at_ns,
            class: arrival.class,
            service_ns: arrival.service_ns,
            by_switch: false,
            flag: Flag::REQUEST,
            delivery: delivery as u32,
        });
        let datagrams: Vec<Datagram> = datagrams.collect();
        let last_ns = datagrams.last().map_or(0, |last| last.at_ns);
        Scenario {
            policy: self.policy.clone(),
            workers: self.workers,
            layout: self.layout,
            idle: Idle::Park,
            by_clock: false,
            queue_limit: 1 << 12,
            slots: self.slots,
            look_ns: None,
            probe_gap_ns: 1_000,
            probes: true,
            panics: 0,
            by_feedback: false,
            sections: false,
            crash: None,
            behind_switch: None,
            granting: None,
            by_signal: false,
            means_ns: self.means_ns,
            datagrams,
            room: self.room,
            orders: Vec::new(),
            stop_ns: last_ns + 1_000_000_000,
            deadline: Duration::from_secs(60),
            core_costs: CoreCosts::TINY,
            core_faults: CoreFaults::default(),
        }
    }
}

/// The server's threads are up by then.
const LEAD_NS: u64 = 1_000_000;
