//! A server on a machine that stops, by simulation: the server's time stands still while the machine is stopped, and requests go on to arrive.
//!
//! So the requests are simulated in the server's time, each moved to where it meets that, and their ends are moved back. That is exact for stops
//! of the whole machine, under any policy. A machine that stops one core only delays less than this says.

use anyhow::Result;
use headway_policy::server::systems::ServerSpec;
use headway_report::schedule::Slice;
use headway_sim::{Experiment, Length};
use headway_workload::{Class, Trace, Workload};
use std::ops::Range;

/// The time of a server on a machine that stops.
pub(crate) struct ServerTime {
    /// In order, without overlaps, ns.
    stops: Vec<Range<u64>>,
}

impl ServerTime {
    /// From these stops, in any order, as far as they lie `within` a time.
    pub(crate) fn of(stops: impl Iterator<Item = Range<u64>>, within: &Range<u64>) -> Self {
        let clipped = stops.map(|stop| stop.start.max(within.start)..stop.end.min(within.end));
        let mut all: Vec<Range<u64>> = clipped.filter(|stop| !stop.is_empty()).collect();
        all.sort_unstable_by_key(|stop| stop.start);
        let mut stops: Vec<Range<u64>> = Vec::new();
        for stop in all {
            match stops.last_mut() {
                Some(last) if stop.start <= last.end => last.end = last.end.max(stop.end),
                _ => stops.push(stop),
            }
        }
        Self { stops }
    }

    /// How long the machine was stopped in all, ns.
    pub(crate) fn stopped_ns(&self) -> u64 {
        self.stops.iter().map(|stop| stop.end - stop.start).sum()
    }

    /// The server's time at a time of the machine, ns.
    fn at(&self, machine_ns: u64) -> u64 {
        let before = self.stops.iter().take_while(|stop| stop.start < machine_ns);
        let lost_ns: u64 = before
            .map(|stop| stop.end.min(machine_ns) - stop.start)
            .sum();
        machine_ns - lost_ns
    }

    /// When the machine reaches a time of the server, ns.
    fn reached(&self, server_ns: u64) -> u64 {
        let mut machine_ns = server_ns;
        for stop in &self.stops {
            if stop.start >= machine_ns {
                break;
            }
            machine_ns += stop.end - stop.start;
        }
        machine_ns
    }
}

/// A request as it arrives.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArrivingRequest {
    /// On the machine's scale, ns; not before the request ahead of it.
    pub(crate) at_ns: u64,
    pub(crate) class: usize,
}

/// How long each request stays under a policy, ns. Requests of a class take the class's mean time.
pub(crate) fn stays_ns(
    workload: &Workload,
    workers: usize,
    policy: &ServerSpec,
    requests: &[ArrivingRequest],
    time: &ServerTime,
) -> Result<Vec<u64>> {
    if requests.is_empty() {
        return Ok(Vec::new());
    }
    let union: Vec<&Class> = workload.union().collect();
    let names = union.iter().map(|class| class.name.clone()).collect();
    let at_ns: Vec<u64> = requests.iter().map(|it| time.at(it.at_ns)).collect();
    let class: Vec<u16> = requests.iter().map(|it| it.class as u16).collect();
    let service = |it: &ArrivingRequest| union[it.class].mean_ns().round() as u64;
    let service_ns: Vec<u64> = requests.iter().map(service).collect();
    let trace = Trace::from_columns("requests", names, &at_ns, &class, &service_ns)?;
    let policy = policy.clone();
    let mut experiment =
        Experiment::new(trace.into_workload("requests"), policy.into()).workers(workers);
    experiment.length = Length::Requests(requests.len() as u64);
    experiment.trace_window = Some(0..u64::MAX);
    let stays = lives_ns(&experiment.run()?.slices);
    let stays = stays.into_iter().zip(requests);
    let stay = |(stay_ns, request): (u64, &ArrivingRequest)| {
        time.reached(time.at(request.at_ns) + stay_ns) - request.at_ns
    };
    Ok(stays.map(stay).collect())
}

/// Each request's life in these slices, ns by its index.
pub(crate) fn lives_ns(slices: &[Slice]) -> Vec<u64> {
    let requests = slices.iter().map(|slice| slice.request as usize + 1);
    let requests = requests.max().unwrap_or(0);
    let (mut lives_ns, mut arrived_ns) = (vec![0; requests], vec![0; requests]);
    for slice in slices {
        let index = slice.request as usize;
        if !slice.resumed {
            arrived_ns[index] = slice.waited_from_ns;
        }
        lives_ns[index] = slice.to_ns - arrived_ns[index];
    }
    lives_ns
}
