//! The errors of `AF_XDP`, each with its remedy.

use std::io;

use aya::EbpfError;
use aya::maps::MapError;
use aya::programs::ProgramError;
use headway_bpf::ObjectError;

use crate::mac::MacAddress;

/// Why a device's packets are out of reach.
#[derive(thiserror::Error)]
pub enum XskError {
    /// There is no such device.
    #[error("there is no device {device}: `ip link` lists those of this network namespace")]
    NoDevice {
        /// The device asked for.
        device: String,
    },
    /// The device's frames have no Ethernet header.
    #[error(
        "device {device} carries no Ethernet frames (link type {link_type}, where Ethernet is 1), and no others are served: name an Ethernet device"
    )]
    NotEthernet {
        /// The device.
        device: String,
        /// The type of its link layer, by the kernel's `ARPHRD` numbers.
        link_type: u16,
    },
    /// The device lies above another one, which chooses the frames for it by Ethernet address.
    #[error(
        "device {device} is a {kind}, which gets no frames for Ethernet addresses but its own: name the device below it{lower}"
    )]
    KeepsFramesBack {
        /// The device.
        device: String,
        /// The kernel's word for devices of its kind.
        kind: String,
        /// A comma and the name of the device below it, if that is in this network namespace.
        lower: String,
    },
    /// The device has no address.
    #[error(
        "device {device} has no IP address: give it one (`ip address add ADDRESS/24 dev {device}`)"
    )]
    NoAddress {
        /// The device.
        device: String,
    },
    /// The port is taken.
    #[error(
        "port {port} of {device} is in use by another socket (`ss -ulnp sport = :{port}` names it): stop that one, or choose another port, or port 0 \
         for any"
    )]
    PortInUse {
        /// The device.
        device: String,
        /// The port asked for.
        port: u16,
    },
    /// The kernel was built without `AF_XDP`.
    #[error(
        "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): boot one that has, or listen on udp://HOST:PORT"
    )]
    NoXdpSockets,
    /// The process lacks the permission.
    #[error(
        "AF_XDP needs root, or CAP_NET_RAW, CAP_NET_ADMIN and CAP_BPF: run as root, or listen on udp://HOST:PORT"
    )]
    Denied,
    /// The process may not lock memory of this size.
    #[error(
        "the kernel locks no {mib} MiB of packet memory for this process: run as root, or with CAP_IPC_LOCK, or raise the limit (`ulimit -l`)"
    )]
    LockedMemory {
        /// The size of the packet memory, in MiB, rounded up.
        mib: usize,
    },
    /// Another XDP program is attached.
    #[error(
        "device {device} has an XDP program already: `ip link show {device}` names it; stop what uses it, or choose another device"
    )]
    Attached {
        /// The device.
        device: String,
    },
    /// The queue belongs to another socket.
    #[error(
        "queue {queue} of {device} has an AF_XDP socket of another process: stop that one, or choose another device"
    )]
    QueueInUse {
        /// The device.
        device: String,
        /// The queue.
        queue: u32,
    },
    /// The program could not be compiled.
    #[error(transparent)]
    Object(#[from] ObjectError),
    /// The kernel refused the program or its maps.
    #[error("the kernel does not load the XDP program; it needs Linux 5.15: {0}")]
    Load(#[from] EbpfError),
    /// The kernel refused the program.
    #[error("the kernel refuses the XDP program; it needs Linux 5.15: {0}")]
    Program(#[source] ProgramError),
    /// The device takes no program.
    #[error("cannot attach an XDP program to device {device}: {source}")]
    Attach {
        /// The device.
        device: String,
        /// The kernel's error.
        source: ProgramError,
    },
    /// A map refused an entry.
    #[error("cannot write the XDP program's map of {what}: {source}")]
    Map {
        /// The entry.
        what: &'static str,
        /// The kernel's error.
        source: MapError,
    },
    /// The device is gone, or another one has its name.
    #[error("device {device} was removed: bring it back, and start anew")]
    Removed {
        /// The device.
        device: String,
    },
    /// The device got other receive queues, which no socket reads.
    #[error(
        "device {device} has {found} receive queues, and had {were}: start anew to use them, or set them back (`ethtool -L {device} combined {were}`)"
    )]
    QueuesChanged {
        /// The device.
        device: String,
        /// Their number when the device was opened.
        were: u32,
        /// Their number now.
        found: u32,
    },
    /// The device got another Ethernet address, to which frames come that no socket gets.
    #[error(
        "device {device} has the Ethernet address {found}, and had {was}: start anew to use it, or set it back (`ip link set {device} address {was}`)"
    )]
    AddressChanged {
        /// The device.
        device: String,
        /// Its address when it was opened.
        was: MacAddress,
        /// Its address now.
        found: MacAddress,
    },
    /// The device's packets may be longer than the frames of packet memory, which were chosen when the device was opened.
    #[error(
        "device {device} has an MTU of {found}, and had {was}: longer packets would be lost; start anew to receive them, or set it back (`ip link set {device} mtu {was}`)"
    )]
    MtuRaised {
        /// The device.
        device: String,
        /// Its MTU when it was opened.
        was: u32,
        /// Its MTU now.
        found: u32,
    },
    /// The program runs behind the driver, where the kernel has merged packets into longer ones than packet memory holds.
    #[error(
        "the driver of {device} takes no XDP program, and the kernel merges packets before it (GRO), most of which would be lost: turn that off (`ethtool -K {device} gro off`)"
    )]
    MergesPackets {
        /// The device.
        device: String,
    },
    /// The device takes VLAN tags out of packets before the program sees them, and is in VLANs. Requests with a tag would be answered without.
    #[error(
        "device {device} is in VLANs and takes their tags out of packets before an XDP program sees them: turn that off (`ethtool -K {device} rxvlan off`; of a veth pair also at the other end, `ethtool -K PEER txvlan off`), or use the VLAN's own device"
    )]
    HidesTags {
        /// The device.
        device: String,
    },
    /// Any other failure.
    #[error("{operation} for AF_XDP on {device}: {source}")]
    System {
        /// The device.
        device: String,
        /// The failed operation.
        operation: &'static str,
        /// The system's error.
        source: io::Error,
    },
}

headway_words::debug_is_display!(XskError);

impl XskError {
    /// A failed system call on a device's queue; common causes have an error of their own.
    pub(crate) fn of_call(
        device: &str,
        queue: u32,
        operation: &'static str,
        source: io::Error,
    ) -> Self {
        match source.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => Self::NoXdpSockets,
            Some(libc::EPERM | libc::EACCES) => Self::Denied,
            Some(libc::EBUSY) => Self::QueueInUse {
                device: device.to_owned(),
                queue,
            },
            _ => Self::System {
                device: device.to_owned(),
                operation,
                source,
            },
        }
    }
}

impl From<XskError> for io::Error {
    fn from(error: XskError) -> Self {
        io::Error::other(error)
    }
}
