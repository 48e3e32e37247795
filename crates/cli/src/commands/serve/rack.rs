//! The agent of a server behind a rack's switch: `--rack`.

use crate::args::server_host_port;
use crate::error::usage;
use anyhow::{Context, Result};
use headway_machine::Clock;
use headway_net::classify::{AnyClassifier, WireType};
use headway_rack::agent::{
    AgentEvents, AgentKey, OrderedDuty, ServerStatus, connect_agent, run_agent,
};
use headway_runtime::{DutyOrder, RackLink, Server, Stopper};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

#[derive(clap::Args, Clone)]
pub(super) struct RackFlags {
    /// Serve behind the switch of a rack, whose control plane hears agents here: report workers, take duties unless --policy is given, drop
    /// clones that cannot start at once, hand requests back
    #[arg(long, value_name = "HOST:PORT", requires = "rack_key")]
    pub(super) rack: Option<String>,
    /// The key that the rack and its servers share, in a file that only its owner may read
    #[arg(long, value_name = "FILE", requires = "rack")]
    pub(super) rack_key: Option<PathBuf>,
}

/// The rack that a server belongs to.
pub(super) struct RackMembership {
    rack: SocketAddr,
    key: AgentKey,
    /// Whether the control plane chooses the server's policy.
    pub(super) directed: bool,
}

impl RackFlags {
    /// The rack, if there is one. `has_policy` says whether a policy was chosen.
    pub(super) fn membership(&self, has_policy: bool) -> Result<Option<RackMembership>> {
        let (Some(rack), Some(key)) = (&self.rack, &self.rack_key) else {
            return Ok(None);
        };
        Ok(Some(RackMembership {
            rack: server_host_port(rack).map_err(|why| usage("--rack", why))?,
            key: AgentKey::read(key).map_err(|why| usage("--rack-key", why))?,
            directed: !has_policy,
        }))
    }
}

impl RackMembership {
    /// The rack's types are bytes of the wire header: a server that tells requests apart otherwise would take its duties wrongly.
    pub(super) fn check(&self, classifier: &AnyClassifier) -> Result<()> {
        match classifier {
            AnyClassifier::Header(header) if *header == WireType::identity() => Ok(()),
            _ => Err(usage(
                "--classifier",
                "a rack names types by the wire header's type byte: leave it out behind a rack",
            )),
        }
    }
}

/// Stops a server at once, or after its rack knows that it leaves.
pub(super) struct Leaving {
    stopper: Stopper,
    agent: Option<Arc<AtomicBool>>,
}

impl Leaving {
    /// A server without a rack leaves nobody.
    pub(super) fn alone(server: &Server) -> Self {
        Self {
            stopper: server.stopper(),
            agent: None,
        }
    }

    pub(super) fn request_stop(&self) {
        match &self.agent {
            Some(stopped) => stopped.store(true, Ordering::Release),
            None => self.stopper.request_stop(),
        }
    }
}

/// Starts the thread that reports to the rack, if there is one: the server's workers and classes.
pub(super) fn begin(
    server: &Server,
    membership: Option<&RackMembership>,
    workers: usize,
    classes: usize,
) -> Result<Leaving> {
    let (Some(membership), Some(link)) = (membership, server.rack_link()) else {
        return Ok(Leaving::alone(server));
    };
    let at = server.local_addr().context("the server has no address")?;
    let rack = membership.rack;
    let socket = connect_agent(rack, at).map_err(|why| usage("--rack", why))?;
    let mut events = ServerAgent {
        link,
        port: at.port(),
        workers: workers as u16,
        declared: classes,
        rack,
        given: 0,
    };
    let stopped = Arc::new(AtomicBool::new(false));
    let (ends, stopper, key) = (
        Arc::clone(&stopped),
        server.stopper(),
        membership.key.clone(),
    );
    std::thread::Builder::new()
        .name("hw-agent".into())
        .spawn(move || {
            run_agent(&socket, rack, key, Clock::global(), &ends, &mut events);
            stopper.request_stop();
        })
        .context("cannot start the agent's thread")?;
    Ok(Leaving {
        stopper: server.stopper(),
        agent: Some(stopped),
    })
}

struct ServerAgent {
    link: RackLink,
    port: u16,
    workers: u16,
    /// Classes of the server, UNKNOWN not counted.
    declared: usize,
    rack: SocketAddr,
    /// The last order to the server.
    given: u64,
}

impl AgentEvents for ServerAgent {
    fn status(&mut self) -> ServerStatus {
        let counts = self.link.counts();
        ServerStatus {
            port: self.port,
            workers: self.workers,
            draining: false,
            in_force: counts.in_force,
            clones_dropped: counts.clones_dropped,
            handed_back: counts.handed_back,
        }
    }

    fn ordered(&mut self, order: &OrderedDuty, switch: SocketAddr) {
        if order.number == self.given {
            return;
        }
        self.given = order.number;
        let order = DutyOrder {
            number: order.number,
            duty: order.for_classes(self.declared),
            bouncing: order.bouncing,
            switch: switch.into(),
        };
        if let Err(why) = self.link.instruct(&order) {
            say!("the rack's order is not carried out: {why}");
        }
    }

    fn joined(&mut self) {
        say!("the rack at {} has this server", self.rack);
    }

    fn unanswered(&mut self) {
        say!(
            "the rack at {} accepts no report of this server: it is not there, has another key, or does not name port {} of this address",
            self.rack,
            self.port
        );
    }
}
