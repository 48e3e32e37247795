//! One turn over the device and the lanes, which the daemon's loop calls. The policy's [`LanePolling`] chooses the lanes that it reads.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use headway_policy::host::{KthreadId, LanePolling};
use headway_rings::cursor::BrokenRing;
use headway_rings::lane::{
    LANE_BYTES, LANE_PACKETS, LaneEnds, MOST_PACKET_BYTES, PacketSender, Taken,
};
use headway_rings::mapping::SharedMapping;
use headway_xsk::{DeviceWatch, HostAddress, XskError, XskPort};

use crate::steer::{ETHERNET_BYTES, FrameSteering};

/// The most frames taken from a queue of the device, or from a lane, in one turn.
const BATCH: usize = 64;

/// Counts of frames by fate, since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PlaneCounts {
    /// Delivered to a lane, from the device or from another application.
    pub delivered: u64,
    /// Lost: addressed to no application here.
    pub unknown: u64,
    /// Lost: the lane was full.
    pub full: u64,
    /// Sent to the device.
    pub sent: u64,
    /// Lost: the device had no room.
    pub unsent: u64,
    /// Lost: sent with an address that is not the application's, or of a type that could hold one.
    pub spoofed: u64,
    /// Lost: of an impossible length.
    pub invalid: u64,
    /// Lost: sent by an application, and longer than the device takes.
    pub too_long: u64,
    /// Lost: for an application that wrote an impossible index.
    pub broken: u64,
}

/// A turn's findings, on which the daemon acts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TurnFindings {
    /// Applications without a core that got a packet.
    pub to_wake: Vec<usize>,
    /// Applications that wrote an impossible index. The data plane no longer touches their lanes.
    pub broken: Vec<usize>,
    /// Frames moved.
    pub frames: usize,
}

/// The device and the lanes of the applications behind it.
#[derive(Debug)]
pub struct DataPlane {
    port: XskPort,
    steering: FrameSteering,
    lanes: AllLanes,
}

/// The lanes of all applications, with their counts.
#[derive(Debug)]
struct AllLanes {
    applications: Vec<Option<ApplicationLanes>>,
    counts: PlaneCounts,
    findings: TurnFindings,
}

#[derive(Debug)]
struct ApplicationLanes {
    ends: Vec<LaneEnds>,
    polling: LanePolling,
    is_broken: bool,
    /// The packets put into each lane, with those that waited when it was attached.
    put: Vec<u64>,
}

/// A lane's packets towards its kthread: those that waited when it was attached, and those since.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LaneWaiting {
    /// Put into it.
    pub put: u64,
    /// Taken out of it, by the application's own index. The count is at least `put` minus the lane's capacity.
    pub taken: u64,
}

impl DataPlane {
    /// The data plane of a device.
    ///
    /// # Errors
    /// [`XskError`], which names the remedy.
    pub fn open(device: &str) -> Result<Self, XskError> {
        Ok(Self {
            port: XskPort::open(device)?,
            steering: FrameSteering::new(),
            lanes: AllLanes {
                applications: Vec::new(),
                counts: PlaneCounts::default(),
                findings: TurnFindings::default(),
            },
        })
    }

    /// Attaches an application with a lane for each of its kthreads, one behind the other in this memory. Returns its number; `None` when another application
    /// has its address or the lanes do not fit the memory.
    ///
    /// # Errors
    /// [`XskError`] when the device has no room for more.
    pub fn attach(
        &mut self,
        address: HostAddress,
        memory: &Arc<SharedMapping>,
        kthreads: usize,
    ) -> Result<Option<usize>, XskError> {
        let ends = (0..kthreads).map(|kthread| LaneEnds::of_plane(memory, kthread * LANE_BYTES));
        let Some(ends) = ends.collect::<Option<Vec<_>>>() else {
            return Ok(None);
        };
        let Some(polling) = LanePolling::new(kthreads) else {
            return Ok(None);
        };
        let Some(number) = self.steering.attach(address, kthreads) else {
            return Ok(None);
        };
        if let Err(error) = self.port.add_host(address) {
            self.steering.detach(number);
            return Err(error);
        }
        let applications = &mut self.lanes.applications;
        applications.resize_with(applications.len().max(number + 1), || None);
        // The lanes of an application of an earlier daemon may hold packets, for which it must be woken.
        let put = ends.iter().map(|ends| waiting(&ends.sender)).collect();
        applications[number] = Some(ApplicationLanes {
            ends,
            polling,
            is_broken: false,
            put,
        });
        Ok(Some(number))
    }

    /// Detaches an application, and touches its memory no more.
    pub fn detach(&mut self, number: usize) {
        if let Some(address) = self.steering.detach(number) {
            self.port.remove_host(address);
            self.lanes.applications[number] = None;
        }
    }

    /// Sets which kthreads of an application have a core, one bit each.
    pub fn set_active(&mut self, number: usize, active: u64) {
        self.steering.set_active(number, active);
        if let Some(Some(application)) = self.lanes.applications.get_mut(number) {
            application.polling.set_active(active);
        }
    }

    /// Counts of frames by fate so far.
    #[must_use]
    pub fn counts(&self) -> PlaneCounts {
        self.lanes.counts
    }

    /// Frames for applications that the device dropped since this process did not take them in time.
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.port.dropped()
    }

    /// What the device must stay like.
    #[must_use]
    pub fn watch(&self) -> DeviceWatch {
        self.port.watch()
    }

    /// The longest packet that the device takes, without its Ethernet header.
    #[must_use]
    pub fn mtu(&self) -> usize {
        self.port.mtu()
    }

    /// Descriptors that are readable while the device has a frame.
    pub fn descriptors(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.port.descriptors()
    }

    /// The packets that wait in a kthread's lane; none when there is no such lane, or the application broke it.
    #[must_use]
    pub fn ingress(&self, number: usize, kthread: usize) -> LaneWaiting {
        let Some(Some(application)) = self.lanes.applications.get(number) else {
            return LaneWaiting::default();
        };
        let (Some(ends), Some(&put)) =
            (application.ends.get(kthread), application.put.get(kthread))
        else {
            return LaneWaiting::default();
        };
        let taken = if application.is_broken {
            put
        } else {
            put.saturating_sub(waiting(&ends.sender))
        };
        LaneWaiting { put, taken }
    }

    /// Blocks until the device has a frame or the timeout passed, for a daemon that does not spin.
    pub fn wait(&self, timeout_ns: u64) {
        self.port.wait(None, timeout_ns);
    }

    /// Makes the next turn look at all lanes: the policy's [`FullLooks`](headway_policy::host::FullLooks) says so, or the daemon slept.
    pub fn look_everywhere(&mut self) {
        for application in self.lanes.applications.iter_mut().flatten() {
            application.polling.look_everywhere();
        }
    }

    /// Moves waiting packets: from the device into lanes, and from the lanes that the policy names to the device or to another application. The findings stay
    /// valid until the next turn.
    pub fn turn(&mut self) -> &TurnFindings {
        let Self {
            port,
            steering,
            lanes,
        } = self;
        lanes.findings.to_wake.clear();
        lanes.findings.broken.clear();
        lanes.findings.frames = 0;
        port.receive(BATCH, |frame| lanes.deliver(steering, frame));
        let longest = port.mtu() + ETHERNET_BYTES;
        let mut buffer = [0; MOST_PACKET_BYTES];
        let mut is_sending = false;
        for number in 0..lanes.applications.len() {
            let mut polled = lanes.polled(number);
            while polled != 0 {
                let kthread = polled.trailing_zeros() as usize;
                polled &= polled - 1;
                for _ in 0..BATCH {
                    let Some(length) = lanes.take(number, kthread, &mut buffer) else {
                        break;
                    };
                    let frame = &buffer[..length];
                    if !steering.may_send(number, frame) {
                        lanes.counts.spoofed += 1;
                    } else if length > longest {
                        lanes.counts.too_long += 1;
                    } else if steering.application_of(frame).is_some() {
                        lanes.deliver(steering, frame);
                    } else {
                        is_sending = true;
                        lanes.send(port, frame);
                    }
                }
            }
        }
        if is_sending {
            // A later call sends the frames that the kernel leaves now.
            let _ = port.flush();
        }
        &lanes.findings
    }
}

/// The packets that wait in a lane, by the application's own index.
fn waiting(sender: &PacketSender) -> u64 {
    u64::from(sender.unread().min(LANE_PACKETS))
}

impl AllLanes {
    /// The kthreads whose lanes are polled, one bit each. None of an application that broke its ring.
    #[inline]
    fn polled(&self, number: usize) -> u64 {
        match &self.applications[number] {
            Some(application) if !application.is_broken => application.polling.polled(),
            _ => 0,
        }
    }

    /// Puts a frame into its kthread's lane.
    #[inline]
    fn deliver(&mut self, steering: &FrameSteering, frame: &[u8]) {
        self.findings.frames += 1;
        let Some(place) = steering.steer(frame) else {
            self.counts.unknown += 1;
            return;
        };
        let Some(Some(application)) = self.applications.get_mut(place.application) else {
            return;
        };
        if application.is_broken {
            self.counts.broken += 1;
            return;
        }
        match application.ends[place.kthread].sender.send(frame) {
            Ok(true) => {
                application.put[place.kthread] += 1;
                self.counts.delivered += 1;
            }
            Ok(false) => self.counts.full += 1,
            Err(error) => {
                self.counts.broken += 1;
                self.give_up(place.application, error);
            }
        }
        let to_wake = &mut self.findings.to_wake;
        if !place.is_active && !to_wake.contains(&place.application) {
            to_wake.push(place.application);
        }
    }

    /// Takes a frame that a kthread wrote; its length.
    #[inline]
    fn take(
        &mut self,
        number: usize,
        kthread: usize,
        buffer: &mut [u8; MOST_PACKET_BYTES],
    ) -> Option<usize> {
        let application = self.applications[number].as_mut()?;
        match application.ends[kthread].receiver.receive(buffer) {
            Ok(Taken::Packet(length)) => {
                self.findings.frames += 1;
                Some(length)
            }
            Ok(Taken::Invalid) => {
                self.counts.invalid += 1;
                None
            }
            Ok(Taken::Nothing) => {
                application.polling.found_empty(KthreadId(kthread as u16));
                None
            }
            Err(error) => {
                self.give_up(number, error);
                None
            }
        }
    }

    fn send(&mut self, port: &mut XskPort, frame: &[u8]) {
        let written = port.send(|to| {
            to.get_mut(..frame.len())?.copy_from_slice(frame);
            Some(frame.len())
        });
        match written {
            Ok(()) => self.counts.sent += 1,
            Err(_) => self.counts.unsent += 1,
        }
    }

    /// Stops serving an application that broke its ring; the others are unaffected.
    fn give_up(&mut self, number: usize, _error: BrokenRing) {
        if let Some(Some(application)) = self.applications.get_mut(number)
            && !application.is_broken
        {
            application.is_broken = true;
            self.findings.broken.push(number);
        }
    }
}
