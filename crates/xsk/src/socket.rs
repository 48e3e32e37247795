//! `AF_XDP` sockets, bound to a queue of a device, and their rings.
#![expect(
    unsafe_code,
    reason = "rings are tied to the memory of their frames here"
)]

use std::io;
use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use headway_machine::thread::fork::ParentsOnly;
use headway_rings::mapping::SharedMapping;
use headway_rings::ring::{ConsumerRing, ProducerRing, RingPlaces};

use crate::device::NetDevice;
use crate::error::XskError;
use crate::system;
use crate::umem::{CompletionRing, RxRing, Umem};

/// The time to retry a busy queue, since the kernel frees a closed socket's queue a little later.
const REBIND_PATIENCE: Duration = Duration::from_secs(2);
const REBIND_PAUSE: Duration = Duration::from_millis(10);

/// Entries of a socket's rings. A size of 0 makes no ring.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct RingSizes {
    pub(crate) rx: u32,
    pub(crate) tx: u32,
    /// Entries of the fill ring and of the completion ring, which a queue's first socket holds for all of its sockets.
    pub(crate) frames: Option<FrameRingSizes>,
}

/// Entries of the rings that hand frames to the kernel and bring them back.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FrameRingSizes {
    pub(crate) fill: u32,
    pub(crate) completion: u32,
}

/// A bound socket. It must outlive the use of its rings.
#[derive(Debug)]
pub(crate) struct XskSocket {
    fd: ParentsOnly<OwnedFd>,
}

/// The rings of a new socket.
#[derive(Debug)]
pub(crate) struct SocketRings {
    pub(crate) rx: Option<RxRing>,
    pub(crate) tx: Option<ProducerRing<2>>,
    pub(crate) fill: Option<ProducerRing<1>>,
    pub(crate) completion: Option<CompletionRing>,
}

impl XskSocket {
    /// Opens a socket on a queue of the device. A memory's first socket registers the memory; later ones name the first.
    pub(crate) fn open(
        device: &NetDevice,
        queue: u32,
        umem: &Arc<Umem>,
        first: Option<&Self>,
        sizes: RingSizes,
    ) -> Result<(Self, SocketRings), XskError> {
        let failed =
            |operation| move |source| XskError::of_call(&device.name, queue, operation, source);
        let fd = system::xdp_socket().map_err(failed("socket"))?;
        if first.is_none() {
            let (at, len) = (umem.mapping().base(), umem.mapping().len());
            let at = at.as_ptr().expose_provenance() as u64;
            system::register_umem(fd.as_fd(), at, len as u64, umem.frame_bytes() as u32).map_err(
                |source| match source.raw_os_error() {
                    Some(libc::ENOBUFS) => XskError::LockedMemory {
                        mib: len.div_ceil(1 << 20),
                    },
                    _ => failed("register packet memory")(source),
                },
            )?;
        }
        let rings = rings(fd.as_fd(), umem, sizes).map_err(failed("make rings"))?;
        let first = first.map(|first| first.fd.as_fd());
        bind(fd.as_fd(), device.ifindex, queue, first).map_err(failed("bind"))?;
        let fd = ParentsOnly::new(fd);
        Ok((Self { fd }, rings))
    }

    pub(crate) fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Makes the kernel send all frames in the socket's ring. A permanent refusal is an error; after a temporary one a later call
    /// sends the rest.
    #[inline]
    pub(crate) fn flush(&self, tx: &ProducerRing<2>) -> io::Result<()> {
        /// The kernel sends 32 packets a call, and fewer where it lacks memory for a moment.
        const CALLS: usize = 64;
        for _ in 0..CALLS {
            match system::kick(self.fd()) {
                Ok(()) => {}
                Err(error) => match error.raw_os_error() {
                    Some(libc::EAGAIN | libc::EBUSY | libc::ENOBUFS | libc::EINTR) => {}
                    _ => return Err(error),
                },
            }
            if tx.unread() == 0 {
                return Ok(());
            }
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    /// Packets lost for lack of room, since the socket was opened.
    pub(crate) fn dropped(&self) -> u64 {
        system::dropped(self.fd()).unwrap_or(0)
    }
}

fn bind(
    fd: BorrowedFd<'_>,
    ifindex: u32,
    queue: u32,
    first: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let begun = Instant::now();
    loop {
        match system::bind(fd, ifindex, queue, first) {
            Err(error)
                if error.raw_os_error() == Some(libc::EBUSY)
                    && begun.elapsed() < REBIND_PATIENCE =>
            {
                std::thread::sleep(REBIND_PAUSE);
            }
            result => return result,
        }
    }
}

fn rings(fd: BorrowedFd<'_>, umem: &Arc<Umem>, sizes: RingSizes) -> io::Result<SocketRings> {
    let make = |option, entries: u32| system::make_ring(fd, option, entries);
    if sizes.rx > 0 {
        make(libc::XDP_RX_RING, sizes.rx)?;
    }
    if sizes.tx > 0 {
        make(libc::XDP_TX_RING, sizes.tx)?;
    }
    if let Some(frames) = sizes.frames {
        make(libc::XDP_UMEM_FILL_RING, frames.fill)?;
        make(libc::XDP_UMEM_COMPLETION_RING, frames.completion)?;
    }
    let offsets = system::ring_offsets(fd)?;
    let mut rings = SocketRings {
        rx: None,
        tx: None,
        fill: None,
        completion: None,
    };
    if sizes.rx > 0 {
        let memory = memory::<2>(fd, &offsets.rx, sizes.rx, libc::XDP_PGOFF_RX_RING)?;
        let ring = ConsumerRing::new(&memory.mapping, memory.places, sizes.rx);
        // SAFETY: the socket is of this memory, and its ring was mapped in the line before, for the first time.
        rings.rx = ring.map(|ring| unsafe { RxRing::new(ring, Arc::clone(umem)) });
    }
    if sizes.tx > 0 {
        let memory = memory::<2>(fd, &offsets.tx, sizes.tx, libc::XDP_PGOFF_TX_RING)?;
        rings.tx = ProducerRing::new(&memory.mapping, memory.places, sizes.tx);
    }
    if let Some(frames) = sizes.frames {
        let at = libc::XDP_UMEM_PGOFF_FILL_RING as i64;
        let memory_of_fill = memory::<1>(fd, &offsets.fr, frames.fill, at)?;
        rings.fill = ProducerRing::new(&memory_of_fill.mapping, memory_of_fill.places, frames.fill);
        let at = libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64;
        let memory = memory::<1>(fd, &offsets.cr, frames.completion, at)?;
        let ring = ConsumerRing::new(&memory.mapping, memory.places, frames.completion);
        // SAFETY: as above; sockets that share a queue have one such ring.
        rings.completion = ring.map(|ring| unsafe { CompletionRing::new(ring, Arc::clone(umem)) });
    }
    Ok(rings)
}

/// A ring's memory.
struct MappedRing {
    mapping: Arc<SharedMapping>,
    places: RingPlaces,
}

fn memory<const W: usize>(
    fd: BorrowedFd<'_>,
    offsets: &libc::xdp_ring_offset,
    entries: u32,
    at: i64,
) -> io::Result<MappedRing> {
    let places = RingPlaces {
        producer: offsets.producer as usize,
        consumer: offsets.consumer as usize,
        flags: offsets.flags as usize,
        entries: offsets.desc as usize,
    };
    let bytes = places.entries + entries as usize * W * size_of::<u64>();
    let mapping = Arc::new(SharedMapping::of(fd, bytes, at)?);
    Ok(MappedRing { mapping, places })
}
