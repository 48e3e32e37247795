//! Workers that come and go as an arbiter grants and revokes their cores: what the policy hears of it, and what the arbiter sees of the queues.

use std::sync::Arc;

use headway_policy::server::role::Ingress;
use headway_policy::{BitSet, WorkerId};

use crate::threads::control::ServerControl;
use crate::threads::hosted::HostedCores;

/// The dispatcher's side of workers that come and go.
pub(super) struct Presence {
    cores: Arc<HostedCores>,
    /// The workers that the policy knows of.
    present: BitSet,
    /// The changes that it has heard of, and the most workers that it may use.
    heard: Option<(u32, usize)>,
    /// Requests that ever waited at the dispatcher, and those that do not any more.
    came: u64,
    left: u64,
}

impl Presence {
    /// The policy believes that all `workers` are there.
    pub(super) fn new(cores: Arc<HostedCores>, workers: usize) -> Self {
        Self {
            cores,
            present: BitSet::range(0, workers),
            heard: None,
            came: 0,
            left: 0,
        }
    }

    /// Tells the policy which workers have cores. While none has, nobody dispatches, and the policy is spared a server without workers.
    #[inline]
    pub(super) fn follow(
        &mut self,
        now_ns: u64,
        control: &ServerControl,
        ingress: &mut impl Ingress,
    ) {
        let wanted = (self.cores.changes(), control.workers());
        if self.heard != Some(wanted) {
            self.change(now_ns, wanted, ingress);
        }
    }

    #[cold]
    fn change(&mut self, now_ns: u64, wanted: (u32, usize), ingress: &mut impl Ingress) {
        let (changes, workers) = wanted;
        // Any that are here: if the first of all workers had to be, one that goes would wait to be heard by a leader that may use nobody.
        let active: BitSet = self.cores.active().iter().take(workers).collect();
        if active.is_empty() {
            return;
        }
        for worker in active
            .iter()
            .filter(|&worker| !self.present.contains(worker))
        {
            ingress.worker_added(now_ns, WorkerId(worker as u16));
        }
        for worker in self
            .present
            .iter()
            .filter(|&worker| !active.contains(worker))
        {
            ingress.worker_removed(now_ns, WorkerId(worker as u16));
        }
        self.present = active;
        self.heard = Some(wanted);
        self.cores.apply(changes);
    }

    /// The dispatcher polls its receive queue.
    #[inline]
    pub(super) fn polled(&self, now_ns: u64) {
        self.cores.polled(0, now_ns);
    }

    /// Shows the arbiter how many requests wait after so many were `dispatched`.
    #[inline]
    pub(super) fn tell(&mut self, dispatched: usize, waiting: usize) {
        let waiting = waiting as u64;
        let came = self.came.max(self.left + dispatched as u64 + waiting);
        let left = came - waiting;
        self.cores
            .moved(came - self.came, left - self.left, waiting > 0);
        (self.came, self.left) = (came, left);
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use crate::engine::admission::server_shape;
    use crate::engine::class::DeclaredClass;
    use crate::threads::hosted::{ServerCores, WorkerCore};
    use headway_kthread::Standalone;
    use headway_policy::Shape;
    use headway_policy::server::role::{Ingress, Inspect, Local, Monitor};
    use headway_policy::server::systems::{self, Replicas, System, Visit};
    use proptest::prelude::*;
    use std::time::Duration;

    /// Workers of DARC come and go: it reserves and hands out only what there is, among as many as it may use.
    struct ComeAndGo {
        steps: Vec<(usize, u16)>,
        cores: Arc<HostedCores>,
        control: ServerControl,
    }

    const WORKERS: usize = 4;

    fn plan_is_within<I: Inspect>(ingress: &I, present: &BitSet) -> bool {
        let plan = ingress.plan().expect("DARC has a plan");
        (0..2).all(|class| {
            let class = headway_policy::ClassId(class);
            let all = plan
                .reserved(class)
                .iter()
                .chain(plan.stealable(class).iter());
            let mut all: Vec<usize> = all.collect();
            all.retain(|&worker| !present.contains(worker));
            let some = plan
                .reserved(class)
                .first()
                .or(plan.stealable(class).first());
            all.is_empty() && some.is_some()
        })
    }

    impl Visit for ComeAndGo {
        type Output = bool;

        fn visit<I, L, M>(self, mut system: System<I, L, M>) -> bool
        where
            I: Ingress + Send + 'static,
            L: Local + Send + 'static,
            M: Monitor + Send + 'static,
        {
            let mut presence = Presence::new(Arc::clone(&self.cores), WORKERS);
            let mut here: Vec<Option<WorkerCore>> = (0..WORKERS).map(|_| None).collect();
            let ingress = &mut system.ingress;
            for (now_ns, (worker, class)) in self.steps.into_iter().enumerate() {
                let now_ns = now_ns as u64 * 1_000;
                here[worker] = match here[worker].take() {
                    Some(core) => {
                        drop(core);
                        None
                    }
                    None => Some(WorkerCore::enter(&self.cores, worker)),
                };
                let limit = self.control.workers();
                let active: BitSet = self.cores.active().iter().take(limit).collect();
                if active.is_empty() {
                    continue;
                }
                presence.follow(now_ns, &self.control, ingress);
                let has_heard = self.cores.applied() == self.cores.changes();
                let is_present = presence.present == active;
                if !has_heard || !is_present || !plan_is_within(ingress, &active) {
                    return false;
                }
                let id = headway_policy::JobId(now_ns as u32 / 1_000);
                let job = headway_policy::Job::new(id, headway_policy::ClassId(class), now_ns);
                if ingress.arrived(now_ns, job).is_err() {
                    return false;
                }
                while let Some(given) = ingress.poll(now_ns) {
                    if !active.contains(given.worker.index()) {
                        return false;
                    }
                    let cpu_ns = if class == 0 { 1_000 } else { 100_000 };
                    ingress.finished(now_ns, given.worker, given.job, cpu_ns);
                }
                presence.tell(0, ingress.waiting());
                if presence.came - presence.left != ingress.waiting() as u64 {
                    return false;
                }
            }
            true
        }

        fn visit_replicas<I, L, M>(self, _replicas: Replicas<I, L, M>) -> bool {
            false
        }
    }

    proptest! {
        #[test]
        fn darc_reserves_among_the_workers_that_have_cores_and_no_others(
            steps in prop::collection::vec((0..WORKERS, 0_u16..2), 1..300),
            limit in 1..=WORKERS,
        ) {
            let classes = [1, 100].map(|us| DeclaredClass::new(us.to_string(), Duration::from_micros(us)));
            let shape = Shape {
                job_capacity: 400,
                ..server_shape(WORKERS, &classes, 64).expect("a shape")
            };
            let source = ServerCores(Arc::new(Standalone::new(WORKERS)));
            let cores = Arc::new(HostedCores::new(&source, WORKERS, 1, headway_machine::Clock::global()));
            let control = ServerControl::new(WORKERS, None, 0);
            control.set_workers(limit);
            let spec = "darc,window=20".parse().expect("a policy");
            let visit = ComeAndGo { steps, cores, control };
            prop_assert!(systems::with(&spec, &shape, visit).expect("it is built"));
        }
    }
}
