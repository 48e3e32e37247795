//! A batch of a server: datagrams received into slots, and sent from them to their peers.
#![expect(
    unsafe_code,
    reason = "the kernel reads and writes slots, names and control messages by raw pointers"
)]

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6, UdpSocket};

use libc::{cmsghdr, in_pktinfo, in6_pktinfo, sockaddr_in, sockaddr_in6};

use super::messages::Messages;
use crate::pool::{FreeList, SlotId, SlotPool};
use crate::slot::{PAYLOAD_BYTES, Peer, Slot};

/// Datagrams per system call. Beyond some dozens the call's cost no longer shows.
const BATCH: usize = 64;

/// The arrays for one batch, boxed so that the pointers between them stay valid when it moves.
pub struct Batch {
    messages: Messages<BATCH>,
    names: Box<[sockaddr_in6; BATCH]>,
    controls: Box<[ControlBuffer; BATCH]>,
}

/// A message that arrived.
pub(in crate::udp) struct Received {
    pub(in crate::udp) len: usize,
    pub(in crate::udp) truncated: bool,
    pub(in crate::udp) peer: Peer,
    /// The address it was sent to, if the socket has several.
    pub(in crate::udp) asked_ip: [u8; 16],
}

impl Batch {
    pub(in crate::udp) fn new() -> Batch {
        // SAFETY: both are structures of integers, for which zeros are values.
        let (names, controls) = unsafe { std::mem::zeroed() };
        let mut batch = Batch {
            messages: Messages::new(),
            names: Box::new(names),
            controls: Box::new(controls),
        };
        for i in 0..BATCH {
            let message = batch.messages.header_mut(i);
            message.msg_name = (&raw mut batch.names[i]).cast();
            message.msg_namelen = NAME_BYTES;
            message.msg_control = (&raw mut batch.controls[i]).cast();
        }
        batch
    }

    /// Receives up to `max` datagrams, at most [`BATCH`], into the slots that `free` would hand out next, in
    /// that order, without blocking; returns how many.
    pub(in crate::udp) fn receive(
        &mut self,
        socket: &UdpSocket,
        pool: &SlotPool,
        free: &mut FreeList,
        max: usize,
    ) -> io::Result<usize> {
        let count = max.min(BATCH).min(free.len());
        if count == 0 {
            return Ok(0);
        }
        self.arm(pool, free, count);
        // SAFETY: the first `count` messages point to names and controls of this batch and, since `arm`, to slots of `pool`, borrowed
        // through the call. Nobody else reaches the slots: their tokens are in `free`, borrowed exclusively.
        unsafe { self.messages.receive(socket, count) }
    }

    /// Points each message at its slot, for every batch: the slot of the last batch may be gone with its pool. Panics if
    /// a token is another pool's.
    fn arm(&mut self, pool: &SlotPool, free: &FreeList, count: usize) {
        for (i, id) in free.next().take(count).enumerate() {
            self.messages.header_mut(i).msg_controllen = size_of::<ControlBuffer>();
            let buffer = self.messages.buffer_mut(i);
            buffer.iov_base = Slot::data_ptr(pool.slot_ptr(id)).cast();
            buffer.iov_len = PAYLOAD_BYTES;
        }
    }

    /// The outcome of message `i` of the last receive; makes it ready for the next.
    pub(in crate::udp) fn received(&mut self, i: usize) -> Received {
        let len = self.messages.len(i);
        let message = self.messages.header_mut(i);
        message.msg_namelen = NAME_BYTES;
        Received {
            len,
            truncated: message.msg_flags & libc::MSG_TRUNC != 0,
            peer: read_name(&self.names[i]),
            asked_ip: self.controls[i].read(message.msg_controllen),
        }
    }

    /// Sends the payloads of up to [`BATCH`] slots to their peers, from the addresses that these asked, without blocking; returns how many the kernel
    /// took before it refused one.
    pub(in crate::udp) fn send(
        &mut self,
        socket: &UdpSocket,
        is_v4: bool,
        pool: &SlotPool,
        slots: &mut [SlotId],
    ) -> io::Result<usize> {
        let count = slots.len().min(BATCH);
        for (i, id) in slots[..count].iter_mut().enumerate() {
            let slot = pool.get_mut(id);
            let buffer = self.messages.buffer_mut(i);
            buffer.iov_len = slot.payload().len();
            buffer.iov_base = slot.payload_mut().as_mut_ptr().cast();
            let message = self.messages.header_mut(i);
            message.msg_namelen = write_name(&mut self.names[i], slot.peer, is_v4);
            message.msg_controllen = self.controls[i].write(slot.asked_ip, is_v4);
        }
        // SAFETY: the first `count` messages point to names, controls and slots that live through the call, and nobody
        // else reaches the slots: their tokens are borrowed exclusively.
        unsafe { self.messages.send(socket, 0..count, libc::MSG_DONTWAIT) }
    }
}

impl std::fmt::Debug for Batch {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Batch").finish_non_exhaustive()
    }
}

pub(super) const NAME_BYTES: libc::socklen_t = size_of::<sockaddr_in6>() as libc::socklen_t;

/// Room for one control message: the address of this machine that a datagram came to, or is to come from.
#[repr(C)]
#[derive(Clone, Copy)]
pub(super) struct ControlBuffer {
    header: cmsghdr,
    info: PacketInfo,
}

#[repr(C)]
#[derive(Clone, Copy)]
union PacketInfo {
    v4: in_pktinfo,
    v6: in6_pktinfo,
}

/// The kernel finds a message's data behind its header.
const _: () = assert!(std::mem::offset_of!(ControlBuffer, info) == size_of::<cmsghdr>());

impl ControlBuffer {
    /// The address that the kernel wrote in `bytes` bytes, IPv4 mapped. A response cannot come from a group's address.
    #[inline]
    pub(super) fn read(&self, bytes: usize) -> [u8; 16] {
        if bytes < size_of::<cmsghdr>() {
            return Slot::ANY_IP;
        }
        let ip = match (self.header.cmsg_level, self.header.cmsg_type) {
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => {
                // SAFETY: integers, which any bytes are; the kernel wrote these.
                let addr = unsafe { self.info.v4.ipi_spec_dst.s_addr };
                Ipv4Addr::from(u32::from_be(addr)).to_ipv6_mapped()
            }
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => {
                // SAFETY: as above.
                Ipv6Addr::from(unsafe { self.info.v6.ipi6_addr.s6_addr })
            }
            _ => return Slot::ANY_IP,
        };
        let v4 = ip.to_ipv4_mapped();
        let is_group =
            ip.is_multicast() || v4.is_some_and(|ip| ip.is_multicast() || ip.is_broadcast());
        if is_group { Slot::ANY_IP } else { ip.octets() }
    }

    /// The number of the interface by which the datagram came, from the `bytes` bytes that the kernel wrote; 0 if it does not say.
    #[inline]
    pub(super) fn interface(&self, bytes: usize) -> u32 {
        if bytes < size_of::<cmsghdr>() {
            return 0;
        }
        match (self.header.cmsg_level, self.header.cmsg_type) {
            // SAFETY: integers, which any bytes are; the kernel wrote these.
            (libc::IPPROTO_IP, libc::IP_PKTINFO) => unsafe { self.info.v4.ipi_ifindex as u32 },
            // SAFETY: as above.
            (libc::IPPROTO_IPV6, libc::IPV6_PKTINFO) => unsafe { self.info.v6.ipi6_ifindex },
            _ => 0,
        }
    }

    /// Sets the datagram's source address, if there is one. Returns the length of the control message in bytes.
    pub(super) fn write(&mut self, ip: [u8; 16], is_v4: bool) -> usize {
        if ip == Slot::ANY_IP {
            return 0;
        }
        let (level, kind, info_bytes) = match Ipv6Addr::from(ip).to_ipv4_mapped() {
            Some(ip) if is_v4 => {
                self.info.v4 = in_pktinfo {
                    ipi_ifindex: 0,
                    ipi_spec_dst: libc::in_addr {
                        s_addr: u32::from(ip).to_be(),
                    },
                    ipi_addr: libc::in_addr { s_addr: 0 },
                };
                (libc::IPPROTO_IP, libc::IP_PKTINFO, size_of::<in_pktinfo>())
            }
            _ => {
                self.info.v6 = in6_pktinfo {
                    ipi6_addr: libc::in6_addr { s6_addr: ip },
                    ipi6_ifindex: 0,
                };
                (
                    libc::IPPROTO_IPV6,
                    libc::IPV6_PKTINFO,
                    size_of::<in6_pktinfo>(),
                )
            }
        };
        self.header.cmsg_level = level;
        self.header.cmsg_type = kind;
        self.header.cmsg_len = size_of::<cmsghdr>() + info_bytes;
        size_of::<ControlBuffer>()
    }
}

/// A name has the size of the larger of the two families' structures; its family field says which one it is.
pub(super) fn read_name(name: &sockaddr_in6) -> Peer {
    let addr = match i32::from(name.sin6_family) {
        libc::AF_INET => {
            // SAFETY: `sockaddr_in` is smaller and less aligned, and any bytes are a value of it.
            let v4 = unsafe { &*(&raw const *name).cast::<sockaddr_in>() };
            let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
            SocketAddr::V4(SocketAddrV4::new(ip, u16::from_be(v4.sin_port)))
        }
        _ => {
            let ip = Ipv6Addr::from(name.sin6_addr.s6_addr);
            let port = u16::from_be(name.sin6_port);
            SocketAddr::V6(SocketAddrV6::new(ip, port, 0, name.sin6_scope_id))
        }
    };
    Peer::from(addr)
}

pub(super) fn write_name(name: &mut sockaddr_in6, peer: Peer, is_v4: bool) -> libc::socklen_t {
    let mapped = peer.mapped();
    if let Some(ip) = mapped.ip().to_ipv4_mapped()
        && is_v4
    {
        let v4 = sockaddr_in {
            sin_family: libc::AF_INET as libc::sa_family_t,
            sin_port: mapped.port().to_be(),
            sin_addr: libc::in_addr {
                s_addr: u32::from(ip).to_be(),
            },
            sin_zero: [0; 8],
        };
        // SAFETY: `sockaddr_in` is smaller and less aligned than the structure that it overwrites.
        unsafe { (&raw mut *name).cast::<sockaddr_in>().write(v4) };
        return size_of::<sockaddr_in>() as libc::socklen_t;
    }
    *name = sockaddr_in6 {
        sin6_family: libc::AF_INET6 as libc::sa_family_t,
        sin6_port: mapped.port().to_be(),
        sin6_flowinfo: 0,
        sin6_addr: libc::in6_addr {
            s6_addr: mapped.ip().octets(),
        },
        sin6_scope_id: mapped.scope_id(),
    };
    NAME_BYTES
}

#[cfg(test)]
mod tests {
    use super::*;

    fn socket() -> UdpSocket {
        UdpSocket::bind("127.0.0.1:0").unwrap()
    }

    #[test]
    #[should_panic(expected = "out of bounds")]
    fn a_token_armed_for_its_own_pool_is_refused_with_another() {
        let (socket, mut batch) = (socket(), Batch::new());
        let (pool, mut free) = SlotPool::new(1).unwrap();
        let (other, _) = SlotPool::new(1).unwrap();
        let nothing_came = batch.receive(&socket, &pool, &mut free, 1).unwrap_err();
        assert_eq!(nothing_came.kind(), io::ErrorKind::WouldBlock);
        drop(pool);
        let _ = batch.receive(&socket, &other, &mut free, 1);
    }

    #[test]
    fn a_foreign_token_panics_before_the_kernel_is_asked() {
        let (socket, mut batch) = (socket(), Batch::new());
        let (pool, mut free) = SlotPool::new(1).unwrap();
        let (_other, mut foreign) = SlotPool::new(1).unwrap();
        socket
            .send_to(b"kept", socket.local_addr().unwrap())
            .unwrap();
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            batch.receive(&socket, &pool, &mut foreign, 1)
        }))
        .unwrap_err();
        assert_eq!(batch.receive(&socket, &pool, &mut free, 1).unwrap(), 1);
        assert_eq!(batch.received(0).len, 4);
    }

    #[test]
    fn names_read_back_as_written() {
        let mut name = Batch::new().names[0];
        for (text, is_v4) in [
            ("10.1.2.3:9", true),
            ("10.1.2.3:9", false),
            ("[fe80::2%3]:80", false),
        ] {
            let peer = Peer::from(text.parse::<SocketAddr>().unwrap());
            let bytes = write_name(&mut name, peer, is_v4);
            assert_eq!(bytes < NAME_BYTES, is_v4);
            assert_eq!(read_name(&name), peer, "{text}");
        }
    }
}
