//! Computes the result of a run from the records of its requests.

use std::net::SocketAddr;
use std::ops::Range;

use headway_machine::thread::Responsiveness;
use headway_net::header::Status;
use headway_report::{
    ClassMeta, Delivery, Histogram, LOST_FRACTION_MAX, Recorder, Run, RunExtras, RunLevel, RunMeta,
};
use headway_workload::TraceRecord;

use crate::backlog::BacklogSeries;
use crate::client::Harvest;
use crate::flaw::{Flaw, LATE_FRACTION_MAX};
use crate::ledger::{Answer, Answers};
use crate::load::{Load, ServiceTime};
use crate::plan::{Planned, SendPlan};
use crate::port::ClientPort;
use crate::sender::Sending;

/// The result of a load.
#[derive(Debug, Clone)]
pub struct LoadReport {
    /// The machine-readable result: latencies from the intended send, warm-up left out.
    pub run: Run,
    /// What [`run`](Self::run) summarises: latencies from the intended send.
    pub corrected: Recorder,
    /// The same requests' latencies from the actual send, which exclude the client's own delay.
    pub raw: Recorder,
    /// Delays of sends after their intended times, ns, warm-up included.
    pub lag_ns: Histogram,
    /// Each measured answer, where [`Load::keep_answers`] asks for that; otherwise empty.
    pub answers: Vec<Answered>,
    /// Every request served, as a trace records it, where [`Load::keep_trace`] asks for that: its intended send time, its class, and the
    /// server's execution time (the workload's service time, where the server reports none). Warm-up included.
    pub trace: Vec<TraceRecord>,
    /// The measured interval, ns on the load's [clock](Load::clock): from the first measured request's intended send to the last reply.
    pub measured: Range<u64>,
    /// The counts of all requests and replies, warm-up included.
    pub delivery: Delivery,
    /// The answered requests by their replies' status, warm-up included.
    pub statuses: Statuses,
    /// How replies were timed.
    pub receive_clock: ReceiveClock,
    /// The scheduling that the kernel granted the client's thread; `None` for a client of two threads, which spins.
    pub responsiveness: Option<Responsiveness>,
    /// Number of the target's reports of a port without a listener.
    pub refused: u64,
    /// Requests that the system refused to send; they count as lost.
    pub send_failed: u64,
    /// Why the latencies should not be trusted; empty for a valid run.
    pub flaws: Vec<Flaw>,
}

impl LoadReport {
    /// Whether the run measured the server.
    #[must_use]
    pub fn is_valid(&self) -> bool {
        self.flaws.is_empty()
    }

    /// The flaws of the run; empty for a valid run.
    fn found_flaws(&self, target: SocketAddr, bound_ns: u64) -> Vec<Flaw> {
        let delivery = &self.delivery;
        let sent = delivery.sent.max(1) as f64;
        let (refused, send_failed) = (self.refused, self.send_failed);
        let lost = delivery.lost_fraction();
        let late = delivery.late as f64 / sent;
        let failed = self.statuses.failed() as f64 / sent;
        let candidates = [
            (
                refused > 0,
                Flaw::Refused {
                    count: refused,
                    target,
                },
            ),
            (send_failed > 0, Flaw::SendFailed { count: send_failed }),
            (lost > LOST_FRACTION_MAX, Flaw::Lost { fraction: lost }),
            (
                late > LATE_FRACTION_MAX,
                Flaw::Late {
                    fraction: late,
                    bound_ns,
                },
            ),
            (
                failed > LOST_FRACTION_MAX,
                Flaw::Failed { fraction: failed },
            ),
        ];
        let found = candidates.into_iter().filter(|(is_so, _)| *is_so);
        found.map(|(_, flaw)| flaw).collect()
    }
}

/// A request that was served, warm-up left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Answered {
    /// Its index in the workload, warm-up included.
    pub index: usize,
    /// Its class.
    pub class: usize,
    /// Its intended send time, ns on the scale of the load's [clock](Load::clock).
    pub due_ns: u64,
    /// From the intended send to the reply, ns.
    pub since_due_ns: u64,
    /// From the actual send, which excludes the client's own delay, ns.
    pub since_sent_ns: u64,
}

/// Answered requests by status. Only `ok` ones have a latency.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statuses {
    /// Served.
    pub ok: u64,
    /// Dropped by the server's flow control: counted as dropped by class.
    pub shed: u64,
    /// The answer did not fit into a datagram.
    pub too_large: u64,
    /// The handler failed.
    pub error: u64,
    /// Refused by a server that was shutting down: counted as dropped by class.
    pub draining: u64,
    /// Not a request of the service.
    pub bad_request: u64,
}

impl Statuses {
    /// Requests that were served wrongly, as opposed to turned away.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.too_large + self.error + self.bad_request
    }

    fn count(&mut self, status: Status) {
        *match status {
            Status::Ok => &mut self.ok,
            Status::Shed => &mut self.shed,
            Status::TooLarge => &mut self.too_large,
            Status::Error => &mut self.error,
            Status::Draining => &mut self.draining,
            Status::BadRequest => &mut self.bad_request,
        } += 1;
    }
}

/// How replies were timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReceiveClock {
    /// By the kernel as they arrived, but for a few.
    Kernel {
        /// Replies timed as they were read, because the kernel's clock was stepped.
        read: u64,
    },
    /// As they were read: latencies include the time the client took to get to it.
    Read,
}

/// A finished run.
pub(crate) struct FinishedLoad<'a, P: ClientPort> {
    load: &'a Load,
    plan: &'a SendPlan,
    run: Sending<'a, P>,
    harvest: Harvest<'a, P>,
}

impl<'a, P: ClientPort> FinishedLoad<'a, P> {
    pub(crate) fn new(
        load: &'a Load,
        plan: &'a SendPlan,
        run: Sending<'a, P>,
        harvest: Harvest<'a, P>,
    ) -> Self {
        Self {
            load,
            plan,
            run,
            harvest,
        }
    }

    pub(crate) fn report(&self) -> LoadReport {
        let metas = self.class_metas();
        let mut tally = LoadTally::new(&metas, self);
        for index in 0..self.sent() {
            tally.add(self, index);
        }
        let delivery = self.delivery(tally.late);
        let mut report = LoadReport {
            run: self.result(&tally, delivery),
            corrected: tally.corrected,
            raw: tally.raw,
            lag_ns: tally.lag_ns,
            answers: tally.kept,
            trace: tally.trace,
            measured: tally.from_ns..tally.to_ns.max(tally.from_ns),
            delivery,
            statuses: tally.statuses,
            receive_clock: self.receive_clock(),
            responsiveness: self.harvest.responsiveness,
            refused: self.harvest.refused,
            send_failed: self.harvest.failed,
            flaws: Vec::new(),
        };
        report.flaws = report.found_flaws(self.load.target, self.load.late_bound_ns);
        report
    }

    fn answers(&self) -> &Answers {
        &self.harvest.receiver.answers
    }

    fn sent(&self) -> usize {
        self.run.departures.count() as usize
    }

    /// The first request that is measured.
    fn first_measured(&self) -> usize {
        (self.sent() as f64 * self.load.warm_up) as usize
    }

    fn requests(&self) -> &[Planned] {
        &self.plan.requests[..self.sent()]
    }

    fn intended_ns(&self, index: usize) -> u64 {
        self.run.start_ns + self.plan.requests[index].at_ns
    }

    fn service_ns(&self, index: usize, answer: &Answer) -> u64 {
        match self.load.service_time {
            ServiceTime::Nominal => self.plan.requests[index].service_ns,
            ServiceTime::Reported => u64::from(answer.execution_ns).max(1),
        }
    }

    fn trace_record(&self, index: usize, answer: &Answer) -> TraceRecord {
        let planned = &self.plan.requests[index];
        TraceRecord {
            at_ns: planned.at_ns,
            class: u16::from(planned.class),
            service_ns: match answer.execution_ns {
                0 => planned.service_ns,
                execution_ns => u64::from(execution_ns),
            },
        }
    }

    /// Each class with its mean service time: the workload's, or over what the server said.
    fn class_metas(&self) -> Vec<ClassMeta> {
        let classes = self.load.workload.union();
        let mut metas: Vec<ClassMeta> = classes
            .map(|class| ClassMeta::new(class.name.clone(), class.mean_ns()))
            .collect();
        if self.load.service_time == ServiceTime::Reported {
            for (meta, mean_ns) in metas.iter_mut().zip(self.reported_means_ns()) {
                meta.service_ns = mean_ns;
            }
        }
        metas
    }

    fn reported_means_ns(&self) -> Vec<f64> {
        let mut sums = vec![(0.0, 0_u64); self.load.workload.class_names().len()];
        for index in self.first_measured()..self.sent() {
            if let Some(answer) = self.completion(index) {
                let (sum, count) = &mut sums[usize::from(self.requests()[index].class)];
                *sum += self.service_ns(index, answer) as f64;
                *count += 1;
            }
        }
        sums.into_iter()
            .map(|(sum, count): (f64, u64)| sum / count.max(1) as f64)
            .collect()
    }

    /// The reply of a request that was served.
    fn completion(&self, index: usize) -> Option<&Answer> {
        let answer = self.answers().get(index)?;
        (answer.status == Status::Ok).then_some(answer)
    }

    fn delivery(&self, late: u64) -> Delivery {
        let (sent, answers) = (self.sent() as u64, self.answers());
        Delivery {
            sent,
            answered: answers.answered,
            lost: sent - answers.answered,
            late,
            duplicates: answers.duplicates,
            invalid: answers.invalid,
        }
    }

    fn receive_clock(&self) -> ReceiveClock {
        let answers = self.answers();
        if self.run.port.is_stamped() {
            let read = answers.answered - answers.stamped;
            ReceiveClock::Kernel { read }
        } else {
            ReceiveClock::Read
        }
    }

    fn result(&self, tally: &LoadTally, delivery: Delivery) -> Run {
        let starved = tally.backlog.starved(self.load.workers);
        let names = self.load.workload.class_names();
        let meta = RunMeta {
            policy: self.load.policy.clone(),
            params: self.load.params.clone(),
            level: RunLevel::Live,
            workload: self.load.workload.name.clone(),
            workers: self.load.workers,
            seed: self.load.seed,
            requests: delivery.sent,
            offered_rps: self.offered_rps(),
            achieved_rps: tally.achieved_rps(),
            load: self.offered_rps() * self.mean_service_ns(tally) / 1e9 / self.load.workers as f64,
            utilization: tally.busy_ns as f64
                / (tally.measured_ns().max(1) * self.load.workers as u64) as f64,
            dropped: tally.dropped,
            preemptions: 0,
            overloaded: !starved.is_empty(),
        };
        let extras = RunExtras {
            starved: starved
                .into_iter()
                .map(|class| names[class].into())
                .collect(),
            delivery: Some(delivery),
            cut_off: self.sent() < self.plan.requests.len(),
            ..RunExtras::default()
        };
        Run::new(meta, &tally.corrected, extras)
    }

    fn offered_rps(&self) -> f64 {
        let span_ns = self.requests().last().map_or(0, |last| last.at_ns);
        self.sent() as f64 * 1e9 / span_ns.max(1) as f64
    }

    fn mean_service_ns(&self, tally: &LoadTally) -> f64 {
        let classes = tally.corrected.classes();
        let total_ns: f64 = match self.load.service_time {
            ServiceTime::Nominal => self
                .requests()
                .iter()
                .map(|request| request.service_ns as f64)
                .sum(),
            ServiceTime::Reported => self
                .requests()
                .iter()
                .map(|request: &Planned| classes[usize::from(request.class)].meta().service_ns)
                .sum(),
        };
        total_ns / self.sent().max(1) as f64
    }
}

/// Sums over all requests.
struct LoadTally {
    corrected: Recorder,
    raw: Recorder,
    lag_ns: Histogram,
    kept: Vec<Answered>,
    trace: Vec<TraceRecord>,
    backlog: BacklogSeries,
    statuses: Statuses,
    late: u64,
    dropped: u64,
    completed: u64,
    /// Service times of the requests measured.
    busy_ns: u64,
    /// The first measured request's intended send time.
    from_ns: u64,
    /// When the last reply measured arrived.
    to_ns: u64,
}

impl LoadTally {
    fn new(metas: &[ClassMeta], load: &FinishedLoad<'_, impl ClientPort>) -> Self {
        let last = load.sent().saturating_sub(1);
        let first = load.first_measured().min(last);
        let (start_ns, end_ns) = (load.intended_ns(0), load.intended_ns(last));
        Self {
            corrected: Recorder::new(metas),
            raw: Recorder::new(metas),
            lag_ns: Histogram::new(),
            kept: Vec::new(),
            trace: Vec::new(),
            backlog: BacklogSeries::new(metas.len(), start_ns, end_ns),
            statuses: Statuses::default(),
            late: 0,
            dropped: 0,
            completed: 0,
            busy_ns: 0,
            from_ns: load.intended_ns(first),
            to_ns: 0,
        }
    }

    fn add(&mut self, load: &FinishedLoad<'_, impl ClientPort>, index: usize) {
        let class = usize::from(load.requests()[index].class);
        let departed_ns = load.run.departures.time_ns(index);
        let departed_ns = departed_ns.expect("the first `sent` requests have left");
        let lag_ns = departed_ns.saturating_sub(load.intended_ns(index));
        self.lag_ns.record(lag_ns);
        self.late += u64::from(lag_ns > load.load.late_bound_ns);
        let Some(answer) = load.answers().get(index) else {
            self.drop(class, index >= load.first_measured());
            return;
        };
        self.statuses.count(answer.status);
        self.backlog.add(class, departed_ns, answer.received_ns());
        if load.load.keep_trace && answer.status == Status::Ok {
            self.trace.push(load.trace_record(index, answer));
        }
        let measured = index >= load.first_measured();
        match answer.status {
            Status::Ok if measured => self.complete(load, index, answer, departed_ns),
            Status::Shed | Status::Draining => self.drop(class, measured),
            _ => {}
        }
    }

    fn complete(
        &mut self,
        load: &FinishedLoad<'_, impl ClientPort>,
        index: usize,
        answer: &Answer,
        departed_ns: u64,
    ) {
        let class = usize::from(load.requests()[index].class);
        let service_ns = load.service_ns(index, answer);
        let since = |start_ns: u64| answer.received_ns().saturating_sub(start_ns);
        let since_due_ns = since(load.intended_ns(index));
        let since_sent_ns = since(departed_ns);
        self.corrected.record(class, since_due_ns, service_ns);
        self.raw.record(class, since_sent_ns, service_ns);
        if load.load.keep_answers {
            self.kept.push(Answered {
                index,
                class,
                due_ns: load.intended_ns(index),
                since_due_ns,
                since_sent_ns,
            });
        }
        self.completed += 1;
        self.busy_ns += match answer.execution_ns {
            0 => service_ns,
            execution_ns => u64::from(execution_ns),
        };
        self.to_ns = self.to_ns.max(answer.received_ns());
    }

    /// A request lost or turned away; those of the warm-up are in the total only.
    fn drop(&mut self, class: usize, measured: bool) {
        self.dropped += 1;
        if measured {
            self.corrected.dropped(class);
            self.raw.dropped(class);
        }
    }

    fn measured_ns(&self) -> u64 {
        self.to_ns.saturating_sub(self.from_ns)
    }

    fn achieved_rps(&self) -> f64 {
        self.completed as f64 * 1e9 / self.measured_ns().max(1) as f64
    }
}
