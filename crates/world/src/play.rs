//! Plays a scenario: a live server in the world, its owner's orders, and what became of everything.

use std::ops::Range;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use headway_kthread::CoreSource;
use headway_machine::Clock;
use headway_runtime::{Observer, Pin, RackCounts, Server, ShutdownError, Stats};
use headway_sync::world as door;

use crate::granted::{CoreLog, LivingArbiter};
use crate::handler::Worker;
use crate::network::{SharedLog, WorldLog, WorldNetwork};
use crate::random::Random;
use crate::scenario::{BehindSwitch, OwnerOrder, Scenario};
use crate::scheduler::{Past, Watched, World, now_ns, read_clock_ns};

/// What became of a scenario.
pub(crate) struct WorldOutcome {
    pub(crate) stats: Result<Stats, ShutdownError>,
    /// Of a server behind a rack's switch.
    pub(crate) rack: Option<RackCounts>,
    pub(crate) log: WorldLog,
    pub(crate) past: Past,
    /// Of a server whose cores an arbiter grants.
    pub(crate) cores: Option<CoreLog>,
    /// When datagrams began to come, when the owner asked for the stop, and when all threads had ended, ns.
    pub(crate) start_ns: u64,
    pub(crate) stop_ns: u64,
    pub(crate) ended_ns: u64,
}

impl WorldOutcome {
    /// The longest time in which this worker's thread ran no handler while the request waited.
    pub(crate) fn longest_idle(&self, worker: usize, waited: &Range<u64>) -> Range<u64> {
        let mut longest = waited.start..waited.start;
        let mut since_ns = waited.start;
        let runs = self.log.runs.iter().filter(|run| run.thread == worker);
        let runs = runs.map(|run| run.from_ns.min(waited.end)..run.to_ns.min(waited.end));
        for run in runs.chain(std::iter::once(waited.end..waited.end)) {
            if run.start.saturating_sub(since_ns) > longest.end - longest.start {
                longest = since_ns..run.start;
            }
            since_ns = since_ns.max(run.end);
        }
        longest
    }
}

/// Plays it in a world of its own.
pub(crate) fn play(scenario: &Scenario, watched: Watched, random: Random) -> WorldOutcome {
    let log = SharedLog::of(scenario.datagrams.len());
    let of_thread = log.clone();
    let (ended, past) = World::run(
        watched,
        random,
        scenario.core_costs,
        scenario.core_faults,
        || {
            let granting = scenario.granting;
            let arbiter = granting.map(|it| LivingArbiter::start(it, scenario.workers));
            let stopped = own(scenario, &of_thread, arbiter.as_ref());
            (stopped, arbiter.map(LivingArbiter::end))
        },
    );
    let (ended, arbiter) = ended;
    let cores = arbiter.map(|(log, thread)| {
        thread.join().expect("the arbiter ends");
        log
    });
    let log = std::mem::take(&mut *log.lock());
    WorldOutcome {
        stats: ended.stats,
        rack: ended.rack,
        log,
        past,
        cores,
        start_ns: ended.start_ns,
        stop_ns: ended.stop_ns,
        ended_ns: ended.ended_ns,
    }
}

struct StoppedServer {
    rack: Option<RackCounts>,
    stats: Result<Stats, ShutdownError>,
    start_ns: u64,
    stop_ns: u64,
    ended_ns: u64,
}

/// What the server's owner does.
fn own(scenario: &Scenario, log: &SharedLog, arbiter: Option<&LivingArbiter>) -> StoppedServer {
    let start_ns = now_ns();
    let plans = Arc::default();
    let server = start(scenario, log, &plans, arbiter);
    // Its handlers ask for the plan, which only policies of this kind have.
    let stats = server.stats();
    if let Some(plan) = stats.plan {
        log.lock().plans.push((stats.plan_revisions, plan));
        let _ = plans.set(server.observer());
    }
    let rack = server.rack_link();
    for (at_ns, order) in &scenario.orders {
        if *at_ns >= scenario.stop_ns {
            break;
        }
        sleep_until(start_ns + at_ns);
        match order {
            OwnerOrder::Workers(workers) => server.set_workers(*workers).expect("it has so many"),
            OwnerOrder::Duty(order) => {
                let rack = rack.as_ref().expect("it is behind a switch");
                rack.instruct(order).expect("an order in its classes");
            }
            OwnerOrder::Rule(key, value) => {
                let rule = [((*key).to_owned(), value.clone())];
                // A refused rule changes nothing.
                drop(server.tuner().set(&rule));
            }
        }
    }
    sleep_until(start_ns + scenario.stop_ns);
    let stop_ns = now_ns();
    let stats = server.shutdown(scenario.deadline);
    StoppedServer {
        stats,
        rack: rack.map(|rack| rack.counts()),
        start_ns,
        stop_ns,
        ended_ns: now_ns(),
    }
}

fn start(
    scenario: &Scenario,
    log: &SharedLog,
    plans: &Arc<OnceLock<Observer>>,
    arbiter: Option<&LivingArbiter>,
) -> Server {
    let start_ns = now_ns();
    let mut datagrams = scenario.datagrams.clone();
    for datagram in &mut datagrams {
        datagram.at_ns += start_ns;
    }
    let network = WorldNetwork {
        datagrams,
        room: scenario.room,
        log: log.clone(),
        crash: scenario.crash,
    };
    let handler = Worker {
        log: log.clone(),
        probe_gap_ns: scenario.probe_gap_ns,
        probes: scenario.probes,
        panics: scenario.panics,
        by_feedback: scenario.by_feedback,
        sections: scenario.sections,
        plans: Arc::clone(plans),
    };
    let builder = Server::builder()
        .clock(Clock::given(read_clock_ns))
        .policy_spec(scenario.policy.clone())
        .classes(scenario.classes())
        .workers(scenario.workers)
        .layout(scenario.layout)
        .idle(scenario.idle)
        .pin(Pin::Off)
        .by_feedback(scenario.by_feedback)
        .stack_bytes(64 << 10);
    let builder = with_options(builder, scenario);
    let builder = match arbiter {
        Some(arbiter) => builder.cores_from(Arc::clone(&arbiter.cores) as Arc<dyn CoreSource>),
        None => builder,
    };
    let builder = anywhere(builder);
    let builder = match scenario.behind_switch {
        None => builder,
        Some(BehindSwitch::OwnPolicy) => builder.behind_switch(),
        Some(BehindSwitch::Directed) => builder.directed(),
    };
    let started = builder.service(handler).datapath(network).start();
    started.expect("a server of this scenario starts")
}

/// Buffers, looks and interruptions as the scenario has them.
fn with_options(
    builder: headway_runtime::Builder,
    scenario: &Scenario,
) -> headway_runtime::Builder {
    let builder = if scenario.has_own_queues() {
        builder.queue_limit(scenario.queue_limit)
    } else {
        builder.slots(scenario.buffers())
    };
    let builder = match scenario.slots {
        Some(slots) => builder.slots(slots),
        None => builder,
    };
    let builder = match scenario.look_ns {
        Some(look_ns) => builder.look_every(Duration::from_nanos(look_ns)),
        None => builder,
    };
    let builder = if scenario.by_clock {
        builder.interrupt_by_clock()
    } else {
        builder
    };
    if scenario.by_signal {
        by_signal(builder)
    } else {
        builder
    }
}

#[expect(
    unsafe_code,
    reason = "only the author of a handler can know that it may change threads"
)]
fn anywhere(builder: headway_runtime::Builder) -> headway_runtime::Builder {
    // SAFETY: the world's handlers keep nothing of their thread's over a probe.
    unsafe {
        builder
            .plain_fibers()
            .resume(headway_policy::Resume::Anywhere)
    }
}

#[expect(
    unsafe_code,
    reason = "only the author of a handler can know that it may be interrupted anywhere"
)]
fn by_signal(builder: headway_runtime::Builder) -> headway_runtime::Builder {
    // SAFETY: threads of a world meet signals between two steps of a handler or where they read the clock, and hold nothing there.
    unsafe { builder.interrupt_by_signal() }
}

fn sleep_until(until_ns: u64) {
    let scheduler = door::current().expect("a thread of a world");
    let place = 1; // No value lies there: nobody wakes who waits here.
    scheduler.wait(place, Some(until_ns.saturating_sub(now_ns())));
}
