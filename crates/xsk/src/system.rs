//! The system calls of `AF_XDP` sockets and of devices.
#![expect(
    unsafe_code,
    reason = "socket options, addresses and device requests that no crate wraps"
)]

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd};

use libc::{c_int, c_void, socklen_t};

/// A new `AF_XDP` socket.
pub(crate) fn xdp_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_XDP, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other value owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Sets an option of an `AF_XDP` socket; `T` is the type that the kernel reads for it.
fn set<T>(fd: BorrowedFd<'_>, option: c_int, value: &T) -> io::Result<()> {
    let (at, bytes) = (
        (&raw const *value).cast::<c_void>(),
        size_of::<T>() as socklen_t,
    );
    // SAFETY: the kernel reads as many bytes as the value has.
    checked(unsafe { libc::setsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, at, bytes) })
}

/// Registers packet memory with the socket.
pub(crate) fn register_umem(fd: BorrowedFd<'_>, at: u64, len: u64, frame: u32) -> io::Result<()> {
    // The struct of Linux 4.18; later fields are 0.
    #[repr(C)]
    struct UmemRegistration {
        addr: u64,
        len: u64,
        chunk_size: u32,
        headroom: u32,
        flags: u32,
        tx_metadata_len: u32,
    }
    let registration = UmemRegistration {
        addr: at,
        len,
        chunk_size: frame,
        headroom: 0,
        flags: 0,
        tx_metadata_len: 0,
    };
    set(fd, libc::XDP_UMEM_REG, &registration)
}

/// Gives the socket a ring of that kind with this many entries.
pub(crate) fn make_ring(fd: BorrowedFd<'_>, option: c_int, entries: u32) -> io::Result<()> {
    set(fd, option, &entries)
}

/// The offsets of the socket's rings in their mappings.
pub(crate) fn ring_offsets(fd: BorrowedFd<'_>) -> io::Result<libc::xdp_mmap_offsets> {
    // SAFETY: integers, for which zeros are values.
    let mut offsets: libc::xdp_mmap_offsets = unsafe { std::mem::zeroed() };
    get(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
    Ok(offsets)
}

/// Packets lost because the socket's rings or the packet memory were full.
pub(crate) fn dropped(fd: BorrowedFd<'_>) -> io::Result<u64> {
    // SAFETY: integers, for which zeros are values.
    let mut counts: libc::xdp_statistics = unsafe { std::mem::zeroed() };
    get(fd, libc::XDP_STATISTICS, &mut counts)?;
    // The first count includes packets that found no frame.
    Ok(counts.rx_dropped + counts.rx_ring_full)
}

fn get<T>(fd: BorrowedFd<'_>, option: c_int, value: &mut T) -> io::Result<()> {
    let mut bytes = size_of::<T>() as socklen_t;
    let at = (&raw mut *value).cast::<c_void>();
    // SAFETY: the kernel writes at most `bytes` bytes.
    checked(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, at, &raw mut bytes) })
}

/// Binds the socket to a device's queue. `shared_with` is a socket whose packet memory it shares.
pub(crate) fn bind(
    fd: BorrowedFd<'_>,
    ifindex: u32,
    queue: u32,
    shared_with: Option<BorrowedFd<'_>>,
) -> io::Result<()> {
    let address = libc::sockaddr_xdp {
        sxdp_family: libc::AF_XDP as u16,
        // A sharing socket inherits the flags of the first.
        sxdp_flags: match shared_with {
            None => libc::XDP_COPY | libc::XDP_USE_NEED_WAKEUP,
            Some(_) => libc::XDP_SHARED_UMEM,
        },
        sxdp_ifindex: ifindex,
        sxdp_queue_id: queue,
        sxdp_shared_umem_fd: shared_with.map_or(0, |fd| fd.as_raw_fd() as u32),
    };
    let bytes = size_of::<libc::sockaddr_xdp>() as socklen_t;
    // SAFETY: the kernel reads an address of that size.
    checked(unsafe { libc::bind(fd.as_raw_fd(), (&raw const address).cast(), bytes) })
}

/// Makes the kernel send the frames in the socket's ring.
#[inline]
pub(crate) fn kick(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no bytes are read.
    let sent = unsafe {
        libc::sendto(
            fd.as_raw_fd(),
            std::ptr::null(),
            0,
            libc::MSG_DONTWAIT,
            std::ptr::null(),
            0,
        )
    };
    if sent < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// The device's MTU, which excludes the Ethernet header.
pub(crate) fn mtu(device: &str) -> io::Result<u32> {
    let mut request = request_of(device);
    control(libc::SIOCGIFMTU, &mut request)?;
    // SAFETY: the kernel wrote this member.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(u32::try_from(mtu).unwrap_or(0))
}

/// The type of the device's link layer (`ARPHRD_ETHER` and the like).
pub(crate) fn link_type(device: &str) -> io::Result<u16> {
    let mut request = request_of(device);
    control(libc::SIOCGIFHWADDR, &mut request)?;
    // SAFETY: the kernel wrote this member.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// Has a device take frames to every Ethernet address for as long as the descriptor is open: a bridge, and a device that filters, keep those back that are
/// not for their own.
pub(crate) fn promiscuous(ifindex: u32) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: no pointers. Protocol 0 receives nothing.
    let fd = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other value owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    let wanted = libc::packet_mreq {
        mr_ifindex: ifindex as c_int,
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    // SAFETY: the kernel reads as many bytes as the value has.
    let set = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            libc::SOL_PACKET,
            libc::PACKET_ADD_MEMBERSHIP,
            (&raw const wanted).cast(),
            size_of::<libc::packet_mreq>() as socklen_t,
        )
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(fd)
}

const SIOCETHTOOL: libc::c_ulong = 0x8946;

/// Whether the kernel merges packets of the device into longer ones (GRO). No where it does not say.
pub(crate) fn merges_packets(device: &str) -> bool {
    const ETHTOOL_GGRO: u32 = 0x2b;
    value_of(device, ETHTOOL_GGRO).is_some_and(|on| on != 0)
}

/// Whether the device takes VLAN tags out of packets (`rxvlan`). No where it does not say.
pub(crate) fn strips_tags(device: &str) -> bool {
    const ETHTOOL_GFLAGS: u32 = 0x25;
    const ETH_FLAG_RXVLAN: u32 = 1 << 8;
    value_of(device, ETHTOOL_GFLAGS).is_some_and(|flags| flags & ETH_FLAG_RXVLAN != 0)
}

/// The answer to a question about the device that has one word.
fn value_of(device: &str, command: u32) -> Option<u32> {
    #[repr(C)]
    struct EthtoolValue {
        command: u32,
        data: u32,
    }
    let mut value = EthtoolValue { command, data: 0 };
    let mut request = request_of(device);
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    control(SIOCETHTOOL as _, &mut request).ok()?;
    Some(value.data)
}

/// The name of a device's driver.
pub(crate) fn driver(device: &str) -> io::Result<String> {
    const ETHTOOL_GDRVINFO: u32 = 0x3;
    #[repr(C)]
    struct DriverInfo {
        command: u32,
        driver: [u8; 32],
        rest: [u8; 160],
    }
    let mut info = DriverInfo {
        command: ETHTOOL_GDRVINFO,
        driver: [0; 32],
        rest: [0; 160],
    };
    let mut request = request_of(device);
    request.ifr_ifru.ifru_data = (&raw mut info).cast();
    control(SIOCETHTOOL as _, &mut request)?;
    let name = info.driver.split(|byte| *byte == 0).next();
    Ok(String::from_utf8_lossy(name.unwrap_or_default()).into_owned())
}

/// A device's number of receive queues; 1 when its driver does not report it.
pub(crate) fn receive_queues(device: &str) -> u32 {
    const ETHTOOL_GCHANNELS: u32 = 0x3c;
    #[repr(C)]
    #[derive(Default)]
    struct Channels {
        command: u32,
        max: [u32; 4],
        rx: u32,
        tx: u32,
        other: u32,
        combined: u32,
    }
    let mut channels = Channels {
        command: ETHTOOL_GCHANNELS,
        ..Channels::default()
    };
    let mut request = request_of(device);
    request.ifr_ifru.ifru_data = (&raw mut channels).cast();
    match control(SIOCETHTOOL as _, &mut request) {
        Ok(()) => (channels.rx + channels.combined).max(1),
        Err(_) => 1,
    }
}

fn request_of(device: &str) -> libc::ifreq {
    // SAFETY: integers and a null pointer, for which zeros are values.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays 0.
    let room = request.ifr_name.len() - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(device.bytes()) {
        *to = from as libc::c_char;
    }
    request
}

fn control(number: libc::Ioctl, request: &mut libc::ifreq) -> io::Result<()> {
    // SAFETY: no pointers.
    let fd = unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) };
    if fd < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the descriptor is new, and no other value owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(fd) };
    // SAFETY: the kernel reads and writes a request of this type and the value that it points to, which both live through the call.
    checked(unsafe { libc::ioctl(fd.as_raw_fd(), number, &raw mut *request) })
}

fn checked(result: c_int) -> io::Result<()> {
    if result < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}
