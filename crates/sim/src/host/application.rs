//! One application while it runs: its server, its arrivals, and its measurements.

use super::arrivals::SteppedArrivals;
use super::experiment::{App, AppWork, HostExperiment};
use super::windows::Windows;
use crate::Costs;
use crate::backlog::BacklogSamples;
use crate::error::SimError;
use crate::server::{self, Left, NEVER, SimRequest, SimulatedServer};
use headway_policy::WorkerId;
use headway_policy::host::{Counters, Kthread, KthreadId, Usage};
use headway_report::{ClassMeta, Recorder};

/// The measured part of the run.
#[derive(Clone, Copy)]
pub(super) struct MeasuredSpan {
    pub(super) from_ns: u64,
    pub(super) to_ns: u64,
}

impl MeasuredSpan {
    /// The measured part of an interval, ns.
    pub(super) fn part_ns(self, from_ns: u64, to_ns: u64) -> u64 {
        to_ns
            .min(self.to_ns)
            .saturating_sub(from_ns.max(self.from_ns))
    }

    pub(super) fn length_ns(self) -> u64 {
        (self.to_ns - self.from_ns).max(1)
    }
}

/// Sums over the measured time.
#[derive(Clone, Copy, Default)]
pub(super) struct Sums {
    /// Core time from the grant of a core until the kthread has left it.
    pub(super) allocated_ns: u64,
    /// Core time spent on requests, or on batch work.
    pub(super) useful_ns: u64,
    pub(super) grants: u64,
    pub(super) preempted: u64,
    pub(super) evicted: u64,
    pub(super) arrivals: u64,
    pub(super) served: u64,
}

/// An application while it runs.
pub(super) struct Application {
    pub(super) sums: Sums,
    pub(super) measured: MeasuredSpan,
    /// Usage since the start, for allocators that estimate.
    usage: Usage,
    seen_ns: u64,
    pub(super) body: AppState,
    /// Kthreads that run on a core.
    running: usize,
    most: u64,
    /// Whether its kthreads ignore the signal to leave.
    pub(super) refuses: bool,
}

pub(super) enum AppState {
    Server(Box<Serving>),
    Batch,
}

/// The server part of an application.
pub(super) struct Serving {
    pub(super) server: Box<dyn SimulatedServer>,
    arrivals: SteppedArrivals,
    left: Vec<Left>,
    pub(super) recorder: Recorder,
    pub(super) backlog: BacklogSamples,
    pub(super) windows: Option<Windows>,
    network_ns: u64,
    tag: u64,
}

impl Application {
    pub(super) fn new(
        experiment: &HostExperiment,
        app: &App,
        index: usize,
    ) -> Result<Self, SimError> {
        let most = app.most.unwrap_or(experiment.topology.cores());
        let body = match &app.work {
            AppWork::Batch => AppState::Batch,
            AppWork::Server { .. } => {
                AppState::Server(Box::new(Serving::new(experiment, app, index, most)?))
            }
        };
        let measured = MeasuredSpan {
            from_ns: experiment.warm_up_ns(),
            to_ns: experiment.duration_ns,
        };
        Ok(Self {
            sums: Sums::default(),
            measured,
            usage: Usage::default(),
            seen_ns: 0,
            body,
            running: 0,
            most: most as u64,
            refuses: app.refuses,
        })
    }

    pub(super) fn is_batch(&self) -> bool {
        matches!(self.body, AppState::Batch)
    }

    /// The time of its server's next event.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        match &self.body {
            AppState::Server(serving) => serving.server.next_ns(),
            AppState::Batch => NEVER,
        }
    }

    #[inline]
    pub(super) fn next_arrival_ns(&self) -> u64 {
        match &self.body {
            AppState::Server(serving) => serving.arrivals.next_ns(),
            AppState::Batch => NEVER,
        }
    }

    /// Number of requests in its server.
    pub(super) fn in_flight(&self) -> usize {
        match &self.body {
            AppState::Server(serving) => serving.server.in_flight(),
            AppState::Batch => 0,
        }
    }

    /// Whether work waits for a core.
    pub(super) fn waits(&self) -> bool {
        match &self.body {
            AppState::Server(serving) => serving.server.waiting() > 0,
            AppState::Batch => true,
        }
    }

    /// Accounts for the time since the last call, during which no state changed.
    #[inline]
    pub(super) fn advance_to(&mut self, now_ns: u64) {
        let for_ns = now_ns - self.seen_ns;
        if for_ns == 0 {
            return;
        }
        let (busy, runnable) = match &self.body {
            AppState::Server(serving) => {
                let runnable = serving.server.in_flight();
                (runnable - serving.server.waiting(), runnable as u64)
            }
            AppState::Batch => (self.running, self.most),
        };
        self.usage.busy_ns += busy as u64 * for_ns;
        self.usage.runnable_ns += runnable * for_ns;
        if self.is_batch() {
            self.sums.useful_ns += busy as u64 * self.measured.part_ns(self.seen_ns, now_ns);
        }
        self.seen_ns = now_ns;
    }

    /// The server carries out its next event.
    #[inline]
    pub(super) fn step(&mut self) {
        let now_ns = self.next_ns();
        self.advance_to(now_ns);
        self.with_server(|server, left| server.step(left));
    }

    /// Ends its arrivals and its measured time.
    pub(super) fn cut_off(&mut self, now_ns: u64) {
        self.measured.to_ns = now_ns.max(self.measured.from_ns);
        if let AppState::Server(serving) = &mut self.body {
            serving.arrivals.end();
        }
    }

    /// The next arrival, which has not reached the server yet.
    pub(super) fn take_arrival(&mut self) -> Option<SimRequest> {
        let counted_from_ns = self.measured.from_ns;
        let AppState::Server(serving) = &mut self.body else {
            return None;
        };
        let arrival = serving.arrivals.take()?;
        serving.tag += 1;
        let counted = arrival.at_ns >= counted_from_ns;
        self.sums.arrivals += u64::from(counted);
        serving.backlog.entered(usize::from(arrival.class));
        Some(SimRequest {
            tag: serving.tag,
            arrived_ns: arrival.at_ns,
            service_ns: arrival.service_ns,
            flow: arrival.flow,
            class: arrival.class,
            taken_for: arrival.class,
            counted,
        })
    }

    pub(super) fn deliver(&mut self, now_ns: u64, request: SimRequest) {
        self.advance_to(now_ns);
        self.with_server(|server, left| server.arrive(now_ns, request, left));
    }

    /// A kthread runs on its core.
    pub(super) fn wake(&mut self, now_ns: u64, kthread: KthreadId) {
        self.advance_to(now_ns);
        self.running += 1;
        self.with_server(|server, left| server.set_worker(now_ns, WorkerId(kthread.0), true, left));
    }

    /// A kthread stops running on its core; what it ran is queued again.
    pub(super) fn stop(&mut self, now_ns: u64, kthread: KthreadId) {
        self.advance_to(now_ns);
        self.running -= 1;
        self.with_server(|server, left| server.revoke(now_ns, WorkerId(kthread.0), left));
    }

    /// Sets or clears the kthread on the sibling hyper-thread.
    pub(super) fn set_sibling(&mut self, kthread: KthreadId, sibling: Option<KthreadId>) {
        if let AppState::Server(serving) = &mut self.body {
            let sibling = sibling.map(|sibling| WorkerId(sibling.0));
            serving.server.set_sibling(WorkerId(kthread.0), sibling);
        }
    }

    /// Whether a kthread that runs on its core finds no work.
    #[inline]
    pub(super) fn is_idle(&self, kthread: KthreadId) -> bool {
        match &self.body {
            AppState::Server(serving) => serving.server.is_idle(WorkerId(kthread.0)),
            AppState::Batch => false,
        }
    }

    pub(super) fn look_at(&self, kthread: KthreadId) -> Kthread {
        match &self.body {
            AppState::Server(serving) => Kthread {
                run: serving.server.counters_at(WorkerId(kthread.0)),
                ingress: Counters::default(),
            },
            AppState::Batch => Kthread::default(),
        }
    }

    /// Counters of the shared queue. A batch application always has a thread in it.
    pub(super) fn shared(&self) -> Counters {
        match &self.body {
            AppState::Server(serving) => serving.server.central_counters(),
            AppState::Batch => Counters { head: 0, tail: 1 },
        }
    }

    /// Usage up to `now_ns`, including the time since the application's last event.
    pub(super) fn usage(&self, now_ns: u64) -> Usage {
        let for_ns = now_ns - self.seen_ns;
        let (busy, runnable) = match &self.body {
            AppState::Server(serving) => {
                let runnable = serving.server.in_flight();
                (runnable - serving.server.waiting(), runnable as u64)
            }
            AppState::Batch => (self.running, self.most),
        };
        Usage {
            busy_ns: self.usage.busy_ns + busy as u64 * for_ns,
            runnable_ns: self.usage.runnable_ns + runnable * for_ns,
        }
    }

    fn with_server(&mut self, act: impl FnOnce(&mut dyn SimulatedServer, &mut Vec<Left>)) {
        let AppState::Server(serving) = &mut self.body else {
            return;
        };
        act(serving.server.as_mut(), &mut serving.left);
        serving.note(&mut self.sums, self.measured);
    }
}

impl Serving {
    fn new(
        experiment: &HostExperiment,
        app: &App,
        index: usize,
        most: usize,
    ) -> Result<Self, SimError> {
        let AppWork::Server {
            workload,
            steps,
            policy,
        } = &app.work
        else {
            unreachable!("a batch application serves nothing");
        };
        let shape = experiment.server_shape(app, workload);
        let costs = Costs {
            overhead_ns: experiment.costs.overhead_ns,
            ..Costs::default()
        };
        let mut server = server::server(policy, &shape, costs)?;
        let mut left = Vec::new();
        for worker in 0..most {
            server.revoke(0, WorkerId(worker as u16), &mut left);
        }
        let classes: Vec<ClassMeta> = workload
            .union()
            .map(|class: &headway_workload::Class| ClassMeta::new(&class.name, class.mean_ns()))
            .collect();
        let seconds = experiment.duration_ns as f64 / 1e9;
        let expected = app.mean_rate_rps(experiment.duration_ns) * seconds;
        let seed = experiment.seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        Ok(Self {
            server,
            arrivals: SteppedArrivals::new(workload, steps, experiment.duration_ns, seed),
            left,
            recorder: Recorder::new(&classes),
            backlog: BacklogSamples::new(classes.len(), expected as u64),
            windows: experiment.window_ns.map(Windows::new),
            network_ns: experiment.network_ns,
            tag: 0,
        })
    }

    /// Records the requests that left the server.
    fn note(&mut self, sums: &mut Sums, measured: MeasuredSpan) {
        for Left {
            at_ns,
            request,
            shed,
        } in self.left.drain(..)
        {
            let class = usize::from(request.class);
            self.backlog.left(class);
            if (measured.from_ns..measured.to_ns).contains(&at_ns) {
                sums.useful_ns += request.service_ns;
            }
            if shed && request.counted {
                self.recorder.dropped(class);
            }
            if shed {
                continue;
            }
            let latency_ns = at_ns - request.arrived_ns + self.network_ns;
            if let Some(windows) = &mut self.windows {
                windows.record(request.arrived_ns, latency_ns);
            }
            if request.counted {
                sums.served += 1;
                self.recorder.record(class, latency_ns, request.service_ns);
            }
        }
    }
}
