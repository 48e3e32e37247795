//! Many datagrams in one system call, with the kernel's receive stamps.
#![expect(
    unsafe_code,
    reason = "sendmmsg and recvmmsg take arrays of raw pointers, and control messages are parsed in place"
)]

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;

use libc::{c_int, c_uint, iovec, mmsghdr, timespec};
use nix::errno::Errno;

/// The arrays for one batch of `N` messages, boxed so that the pointers between them stay valid when
/// it moves. Each message has a buffer of `BYTES`.
struct Messages<const N: usize, const BYTES: usize> {
    headers: Box<[mmsghdr; N]>,
    iovecs: Box<[iovec; N]>,
    buffers: Box<[[u8; BYTES]; N]>,
}

// SAFETY: the pointers lead to the value's own boxes, which move with it.
unsafe impl<const N: usize, const BYTES: usize> Send for Messages<N, BYTES> {}

impl<const N: usize, const BYTES: usize> Messages<N, BYTES> {
    fn new() -> Self {
        // SAFETY: all three are made of integers and raw pointers, for which zeros are values.
        let (headers, iovecs, buffers) = unsafe { std::mem::zeroed() };
        let mut messages = Self {
            headers: Box::new(headers),
            iovecs: Box::new(iovecs),
            buffers: Box::new(buffers),
        };
        for i in 0..N {
            messages.iovecs[i] = iovec {
                iov_base: messages.buffers[i].as_mut_ptr().cast(),
                iov_len: BYTES,
            };
            let header = &mut messages.headers[i].msg_hdr;
            header.msg_iov = &raw mut messages.iovecs[i];
            header.msg_iovlen = 1;
        }
        messages
    }
}

/// Datagrams to send to a connected socket's peer.
pub(crate) struct Outbox<const N: usize, const BYTES: usize> {
    messages: Messages<N, BYTES>,
}

impl<const N: usize, const BYTES: usize> Outbox<N, BYTES> {
    pub(crate) fn new() -> Self {
        let messages = Messages::new();
        Self { messages }
    }

    /// Lets `write` fill message `i` and say how long it is.
    #[inline]
    pub(crate) fn fill(&mut self, i: usize, write: impl FnOnce(&mut [u8; BYTES]) -> usize) {
        let len = write(&mut self.messages.buffers[i]);
        assert!(
            len <= BYTES,
            "a request of {len} bytes is longer than its buffer of {BYTES}"
        );
        self.messages.iovecs[i].iov_len = len;
    }

    /// Sends messages `from..to`; returns how many of them the kernel took.
    pub(crate) fn send(&mut self, socket: &UdpSocket, from: usize, to: usize) -> io::Result<usize> {
        let headers = &mut self.messages.headers[from..to];
        // SAFETY: the headers point to the outbox's own iovecs and buffers, each at most `BYTES` long,
        // borrowed exclusively through the call.
        let result = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as c_uint,
                libc::MSG_NOSIGNAL,
            )
        };
        Ok(Errno::result(result)? as usize)
    }
}

/// Room for one stamp, aligned as control messages are: 16 bytes of header and 16 of time.
type Control = [u64; 8];

/// Datagrams received; of each, the first `BYTES` bytes are kept.
pub(crate) struct Inbox<const N: usize, const BYTES: usize> {
    messages: Messages<N, BYTES>,
    controls: Box<[Control; N]>,
}

impl<const N: usize, const BYTES: usize> Inbox<N, BYTES> {
    pub(crate) fn new() -> Self {
        let mut inbox = Self {
            messages: Messages::new(),
            controls: Box::new([[0; 8]; N]),
        };
        for i in 0..N {
            inbox.messages.headers[i].msg_hdr.msg_control = inbox.controls[i].as_mut_ptr().cast();
        }
        inbox
    }

    /// Receives what is there, up to `N` datagrams, without blocking; returns how many.
    pub(crate) fn receive(&mut self, socket: &UdpSocket) -> io::Result<usize> {
        for header in self.messages.headers.iter_mut() {
            header.msg_hdr.msg_controllen = size_of::<Control>();
        }
        // SAFETY: the headers point to the inbox's own iovecs, buffers and controls, whose sizes they
        // state, borrowed exclusively through the call.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                self.messages.headers.as_mut_ptr(),
                N as c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        Ok(Errno::result(result)? as usize)
    }

    /// The beginning of datagram `i` of the last receive, and when the kernel says it arrived, in ns
    /// of `CLOCK_REALTIME`.
    #[inline]
    pub(crate) fn datagram(&self, i: usize) -> (&[u8], Option<u64>) {
        let header = &self.messages.headers[i];
        let len = (header.msg_len as usize).min(BYTES);
        (&self.messages.buffers[i][..len], stamp_ns(&header.msg_hdr))
    }
}

/// The time in the first control message: the only one asked for.
fn stamp_ns(header: &libc::msghdr) -> Option<u64> {
    const KIND: (c_int, c_int) = (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS);
    // SAFETY: the kernel wrote `msg_controllen` bytes of control messages to `msg_control`, which
    // `CMSG_FIRSTHDR` checks to be enough for a header.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    if (control.cmsg_level, control.cmsg_type) != KIND {
        return None;
    }
    // SAFETY: a control message of this kind contains a `timespec`, for which the buffer has room.
    let time = unsafe { libc::CMSG_DATA(control).cast::<timespec>().read_unaligned() };
    Some(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let one = UdpSocket::bind("127.0.0.1:0").unwrap();
        let two = UdpSocket::bind("127.0.0.1:0").unwrap();
        one.connect(two.local_addr().unwrap()).unwrap();
        two.connect(one.local_addr().unwrap()).unwrap();
        (one, two)
    }

    #[test]
    fn what_is_sent_is_received_in_order_cut_to_the_buffer() {
        let (one, two) = pair();
        let mut outbox = Outbox::<4, 32>::new();
        for i in 0..3 {
            outbox.fill(i, |buffer| {
                buffer.fill(i as u8);
                4 + 8 * i
            });
        }
        assert_eq!(outbox.send(&one, 0, 1).unwrap(), 1);
        assert_eq!(outbox.send(&one, 1, 3).unwrap(), 2);
        let mut inbox = Inbox::<8, 16>::new();
        assert_eq!(inbox.receive(&two).unwrap(), 3);
        assert_eq!(inbox.datagram(0).0, [0; 4]);
        assert_eq!(inbox.datagram(1).0, [1; 12]);
        assert_eq!(inbox.datagram(2).0, [2; 16]);
        let error = inbox.receive(&two).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
    }

    #[test]
    fn stamps_come_only_when_asked_for_and_with_every_batch() {
        use nix::sys::socket::{setsockopt, sockopt};
        let (one, two) = pair();
        let mut inbox = Inbox::<2, 16>::new();
        one.send(b"unstamped").unwrap();
        assert_eq!(inbox.receive(&two).unwrap(), 1);
        assert_eq!(inbox.datagram(0).1, None);
        setsockopt(&two, sockopt::ReceiveTimestampns, &true).unwrap();
        for _ in 0..3 {
            one.send(b"stamped").unwrap();
            assert_eq!(inbox.receive(&two).unwrap(), 1);
            assert!(inbox.datagram(0).1.is_some());
        }
    }
}
