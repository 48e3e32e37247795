//! The settings of a server, all of them chosen.

use super::config::Sourced;
use super::datapath::ListenAddress;
use super::hosted::HostedApp;
use super::interrupt::Interruption;
use super::rack::RackMembership;
use crate::commands::apps::{BuiltInApp, KvFlags};
use anyhow::Result;
use headway_host::client::HostClient;
use headway_net::classify::AnyClassifier;
use headway_net::udp::Steering;
use headway_ops::socket::ControlPlace;
use headway_policy::server::systems::ServerSpec;
use headway_runtime::{Idle, Layout, LayoutCosts, Pin, Server};
use headway_workload::Workload;
use headway_xsk::DeviceWatch;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// Everything decided. What the server may still refuse keeps its place.
pub(super) struct ServeSettings {
    pub(super) listen: Sourced<ListenAddress>,
    pub(super) app: BuiltInApp,
    pub(super) policy: Sourced<ServerSpec>,
    /// The rack that the server belongs to.
    pub(super) rack: Option<RackMembership>,
    /// The daemon that grants its cores.
    pub(super) host: Option<HostedApp>,
    pub(super) workers: Sourced<usize>,
    pub(super) workload: Workload,
    pub(super) classifier: AnyClassifier,
    pub(super) queue_limit: Sourced<u64>,
    /// Whether it was chosen.
    pub(super) limits_queues: bool,
    pub(super) layout: Sourced<Layout>,
    /// What `auto` chooses by.
    pub(super) layout_costs: LayoutCosts,
    pub(super) interruption: Interruption,
    /// Entries that the server keeps of each worker, for `--stats` and `--record`.
    pub(super) journal: usize,
    pub(super) idle: Idle,
    /// None where it was not chosen.
    pub(super) steer: Option<Sourced<Steering>>,
    pub(super) pin: Sourced<Pin>,
    pub(super) drain: Duration,
    pub(super) max_spin_ns: Sourced<u64>,
    pub(super) ctl: Sourced<ControlPlace>,
    /// Where Prometheus and browsers find it.
    pub(super) metrics: Option<Sourced<SocketAddr>>,
    pub(super) seed: u64,
    pub(super) kv: KvFlags,
}

impl ServeSettings {
    /// The running server, and what its device must stay like.
    pub(super) fn start(
        &self,
        cores: Option<Arc<HostClient>>,
    ) -> Result<(Server, Option<DeviceWatch>)> {
        let builder = Server::builder()
            .workers(self.workers.value)
            .policy_spec(self.policy.value.clone())
            .classes(self.app.classes(&self.workload))
            .classifier(self.classifier.clone())
            .seed(self.seed)
            .layout(self.layout.value)
            .layout_costs(self.layout_costs)
            .journal(self.journal)
            .idle(self.idle)
            .pin(self.pin.value.clone())
            .drain(self.drain)
            .control(self.ctl.value.clone())
            .service(
                self.app
                    .service(&self.kv, &self.workload, self.max_spin_ns.value)?,
            );
        let builder = match self.chosen_limit() {
            Some(requests) => builder.queue_limit(requests),
            None => builder,
        };
        let builder = match &self.metrics {
            Some(metrics) => builder.metrics(metrics.value),
            None => builder,
        };
        let builder = match &self.rack {
            Some(rack) if rack.directed => builder.directed(),
            Some(_) => builder.behind_switch(),
            None => builder,
        };
        let builder = match cores {
            Some(cores) => builder.cores_from(cores),
            None => builder,
        };
        let steering = self.steer.as_ref().map(|steer| steer.value);
        let opened = self.listen.value.open(steering.unwrap_or_default());
        let datapath = opened.map_err(|why| self.listen.refused(why))?;
        let (at, device) = (datapath.address(), datapath.watch());
        let builder = builder.datapath_at(datapath, at);
        let started = self.interruption.apply(self.app, builder).start();
        let server = started.map_err(|error| self.refused(error))?;
        Ok((server, device))
    }

    /// The limit of a queue, where it was chosen.
    pub(super) fn chosen_limit(&self) -> Option<usize> {
        self.limits_queues
            .then_some(self.queue_limit.value as usize)
    }
}
