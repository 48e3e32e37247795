//! The data plane beside the arbiter: the arbiter tells it which kthreads have a core, and it tells the arbiter which packets wait.

use crate::arbiter::{AdmissionError, Arbiter, NetworkReport};
use crate::lanes::SharedLanes;
use crate::peer::HostPeer;
use headway_dataplane::plane::DataPlane;
use headway_policy::host::{Allocator, AppId, Counters, FullLooks, KthreadId};
use headway_xsk::{DeviceWatch, HostAddress, XskError};
use std::os::fd::BorrowedFd;

/// The address and lanes of an application that asks for packets.
pub(super) struct NewNetwork {
    pub(super) address: HostAddress,
    pub(super) lanes: SharedLanes,
}

/// A device, and the applications behind it.
pub(super) struct HostNetwork {
    plane: DataPlane,
    device: String,
    apps: Vec<AppPackets>,
    looks: FullLooks,
}

struct AppPackets {
    /// The registration's number.
    id: u64,
    /// The application's number in the data plane.
    number: usize,
    app: AppId,
    kthreads: usize,
    is_broken: bool,
}

impl HostNetwork {
    pub(super) fn open(device: &str) -> Result<Self, XskError> {
        Ok(Self {
            plane: DataPlane::open(device)?,
            device: device.to_owned(),
            apps: Vec::new(),
            looks: FullLooks::default(),
        })
    }

    /// What the device must stay like.
    pub(super) fn watch(&self) -> DeviceWatch {
        self.plane.watch()
    }

    /// The longest packet that the device takes, without its Ethernet header.
    pub(super) fn mtu(&self) -> usize {
        self.plane.mtu()
    }

    /// The descriptors that become readable when packets arrive.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.plane.descriptors()
    }

    /// Delivers packets for this address to these lanes from now on. [`place`](Self::place) names their application.
    pub(super) fn attach(&mut self, id: u64, new: &NewNetwork) -> Result<(), AdmissionError> {
        let NewNetwork { address, lanes } = new;
        let kthreads = lanes.kthreads();
        let attached = self.plane.attach(*address, lanes.mapping(), kthreads);
        let refused = |why: String| AdmissionError::Network(why);
        let number = attached
            .map_err(|error| refused(error.to_string()))?
            .ok_or_else(|| {
                let HostAddress { mac, ip } = address;
                refused(format!(
                    "another application has the address {ip} or {mac}: give each its own in the daemon's settings"
                ))
            })?;
        self.apps.push(AppPackets {
            id,
            number,
            app: AppId(0),
            kthreads,
            is_broken: false,
        });
        Ok(())
    }

    /// Records the arbiter's number of this registration's application.
    pub(super) fn place(&mut self, id: u64, app: AppId) {
        if let Some(one) = self.apps.iter_mut().find(|one| one.id == id) {
            one.app = app;
        }
    }

    /// Forgets an application that is gone, and its memory.
    pub(super) fn detach(&mut self, id: u64) {
        if let Some(place) = self.apps.iter().position(|one| one.id == id) {
            self.plane.detach(self.apps.remove(place).number);
        }
    }

    /// Makes the next turn look at all lanes, since the daemon slept.
    pub(super) fn woke(&mut self) {
        self.plane.look_everywhere();
    }

    /// Moves packets, and tells the arbiter which wait. Returns whether any moved.
    pub(super) fn turn<A: Allocator, P: HostPeer>(&mut self, arbiter: &mut Arbiter<A, P>) -> bool {
        let Self {
            plane, apps, looks, ..
        } = self;
        if looks.next_turn() {
            plane.look_everywhere();
        }
        for one in apps.iter() {
            plane.set_active(one.number, arbiter.kthreads_with_cores(one.app));
        }
        let findings = plane.turn();
        let has_moved = findings.frames > 0;
        for &number in &findings.broken {
            if let Some(one) = apps.iter_mut().find(|one| one.number == number) {
                one.is_broken = true;
            }
        }
        for one in apps.iter() {
            for kthread in 0..one.kthreads {
                let waiting = plane.ingress(one.number, kthread);
                let packets = Counters {
                    head: waiting.taken,
                    tail: waiting.put,
                };
                arbiter.show_packets(one.app, KthreadId(kthread as u16), packets);
            }
        }
        has_moved
    }

    /// Whether a packet of the device must wake the pass thread.
    pub(super) fn wakes<A: Allocator, P: HostPeer>(&self, arbiter: &Arbiter<A, P>) -> bool {
        self.apps.iter().any(|one| arbiter.is_woken_for(one.app))
    }

    pub(super) fn report<A: Allocator, P: HostPeer>(
        &self,
        arbiter: &Arbiter<A, P>,
    ) -> NetworkReport {
        let broken = self.apps.iter().filter(|one| one.is_broken);
        NetworkReport {
            device: self.device.clone(),
            delivered: self.plane.counts().delivered,
            sent: self.plane.counts().sent,
            unknown: self.plane.counts().unknown,
            lane_full: self.plane.counts().full,
            device_full: self.plane.counts().unsent,
            spoofed: self.plane.counts().spoofed,
            invalid: self.plane.counts().invalid,
            too_long: self.plane.counts().too_long,
            for_broken: self.plane.counts().broken,
            missed: self.plane.missed(),
            broken: broken.filter_map(|one| arbiter.name(one.app)).collect(),
        }
    }
}
