//! What a registration brings, and what it is answered.

use std::os::fd::OwnedFd;

use super::closer::ForeignFd;
use super::network::NewNetwork;
use super::settings::AppRule;
use crate::lanes::SharedLanes;
use crate::message::NetworkPlace;
use crate::peer::PeerProcess;
use nix::sched::CpuSet;

/// The sender of a message.
pub(super) struct Speaker {
    pub(super) id: u64,
    pub(super) peer: PeerProcess,
    pub(super) home: CpuSet,
}

/// The descriptors and answer for a registered application.
pub(super) struct Given {
    pub(super) kthreads: usize,
    pub(super) memory: Option<OwnedFd>,
    pub(super) doorbell: OwnedFd,
    pub(super) network: Option<GivenNetwork>,
}

pub(super) struct GivenNetwork {
    pub(super) place: NetworkPlace,
    pub(super) memory: OwnedFd,
}

/// The memory that an application of an earlier daemon brings.
pub(super) struct BroughtMemory {
    pub(super) lines: ForeignFd,
    pub(super) lanes: Option<ForeignFd>,
}

/// The lanes of an application that asks for packets: new ones, or the ones that it brings.
pub(super) fn network_of(
    rule: &AppRule,
    mtu: Option<usize>,
    lanes: Option<ForeignFd>,
    kthreads: usize,
) -> Result<(NewNetwork, GivenNetwork), String> {
    let name = &rule.name;
    let mtu = mtu.ok_or_else(|| {
        format!(
            "'{name}' asks for packets, and the daemon has no device: start it with --device DEV"
        )
    })?;
    let network = rule.network.ok_or_else(|| {
        format!(
            "'{name}' asks for packets, and has no address: give it `ip` in the daemon's settings"
        )
    })?;
    let made = match lanes {
        Some(memory) => {
            SharedLanes::adopt(&memory, kthreads).map(|lanes| (memory.into_known(), lanes))
        }
        None => SharedLanes::create(kthreads),
    };
    let (memory, lanes) = made.map_err(|error| error.to_string())?;
    let address = network.address();
    let place = NetworkPlace {
        mac: address.mac.0,
        ip: network.ip,
        prefix: network.prefix,
        gateway: network.gateway,
        mtu,
    };
    Ok((
        NewNetwork { address, lanes },
        GivenNetwork { place, memory },
    ))
}

/// A process gets only cores that it may use, and it may be granted any that is dealt out.
pub(super) fn check_cores(peer: &PeerProcess, dealt: &[usize]) -> Result<(), String> {
    let pid = peer.pid();
    let usable = peer
        .usable_cores()
        .map_err(|error| format!("process {pid}: {error}"))?;
    if dealt.iter().all(|&core| usable.is_set(core) == Ok(true)) {
        return Ok(());
    }
    let usable = (0..CpuSet::count()).filter(|&core| usable.is_set(core) == Ok(true));
    Err(format!(
        "the cpuset of process {pid} has cores {}, and the daemon deals out {}: widen it, or start the daemon with the cores that its applications have in common (--cores)",
        list(usable),
        list(dealt.iter().copied())
    ))
}

fn list(cores: impl Iterator<Item = usize>) -> String {
    let cores: Vec<String> = cores.map(|core| core.to_string()).collect();
    cores.join(", ")
}
