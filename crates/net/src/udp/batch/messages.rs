//! The kernel's side of a batch: an array of message headers, and the two system calls that take it.
#![expect(
    unsafe_code,
    reason = "recvmmsg and sendmmsg take arrays of raw pointers"
)]

use std::io;
use std::net::UdpSocket;
use std::ops::Range;
use std::os::fd::AsRawFd;

use libc::{c_int, c_uint, iovec, mmsghdr, msghdr};
use nix::errno::Errno;

/// The headers of up to `N` messages of one buffer each, boxed so that the pointers between them stay valid when they move.
pub(super) struct Messages<const N: usize> {
    headers: Box<[mmsghdr; N]>,
    buffers: Box<[iovec; N]>,
    /// Whether a filter of system calls (seccomp) refuses batches: then a call takes one datagram.
    singly: bool,
}

// SAFETY: only the kernel dereferences the pointers, during calls whose callers guarantee that they are valid.
unsafe impl<const N: usize> Send for Messages<N> {}

impl<const N: usize> Messages<N> {
    /// Messages that have no buffers yet.
    pub(super) fn new() -> Self {
        // SAFETY: both are structures of integers and raw pointers, for which zeros are values.
        let (headers, buffers) = unsafe { std::mem::zeroed() };
        let mut messages = Self {
            headers: Box::new(headers),
            buffers: Box::new(buffers),
            singly: false,
        };
        for (header, buffer) in messages.headers.iter_mut().zip(&mut *messages.buffers) {
            header.msg_hdr.msg_iov = buffer;
            header.msg_hdr.msg_iovlen = 1;
        }
        messages
    }

    /// Message `i`, for its peer and its control messages.
    #[inline]
    pub(super) fn header(&self, i: usize) -> &msghdr {
        &self.headers[i].msg_hdr
    }

    /// Message `i`, to be changed.
    #[inline]
    pub(super) fn header_mut(&mut self, i: usize) -> &mut msghdr {
        &mut self.headers[i].msg_hdr
    }

    /// The buffer of message `i`.
    #[inline]
    pub(super) fn buffer_mut(&mut self, i: usize) -> &mut iovec {
        &mut self.buffers[i]
    }

    /// The length of message `i` of the last receive, before any truncation.
    #[inline]
    pub(super) fn len(&self, i: usize) -> usize {
        self.headers[i].msg_len as usize
    }

    /// Receives up to `count` datagrams, without blocking; returns their number.
    ///
    /// # Safety
    /// The first `count` messages point to writable memory of the sizes that they state, and no other code accesses it
    /// during the call.
    #[inline]
    pub(super) unsafe fn receive(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        if self.singly {
            // SAFETY: as the caller guarantees.
            return unsafe { self.receive_singly(socket, count) };
        }
        let headers = &mut self.headers[..count];
        // SAFETY: the headers point to this value's own `iovec`s; the caller vouches for the rest.
        let result = unsafe {
            libc::recvmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as c_uint,
                libc::MSG_DONTWAIT,
                std::ptr::null_mut(),
            )
        };
        match Errno::result(result) {
            Ok(received) => Ok(received as usize),
            Err(errno) if is_filtered(errno) => {
                self.singly = true;
                // SAFETY: as the caller guarantees.
                unsafe { self.receive_singly(socket, count) }
            }
            Err(errno) => Err(errno.into()),
        }
    }

    /// The same, a call for each datagram.
    ///
    /// # Safety
    /// As [`receive`](Self::receive).
    #[cold]
    unsafe fn receive_singly(&mut self, socket: &UdpSocket, count: usize) -> io::Result<usize> {
        for (received, header) in self.headers[..count].iter_mut().enumerate() {
            let message = &raw mut header.msg_hdr;
            // SAFETY: as in `receive`.
            let result = unsafe { libc::recvmsg(socket.as_raw_fd(), message, libc::MSG_DONTWAIT) };
            match Errno::result(result) {
                Ok(len) => header.msg_len = len as c_uint,
                Err(errno) if received == 0 => return Err(errno.into()),
                Err(_) => return Ok(received),
            }
        }
        Ok(count)
    }

    /// Sends the messages of a range; returns the number that the kernel took before it refused one. A closed peer never raises a signal,
    /// with any `flags`.
    ///
    /// # Safety
    /// The messages point to readable memory of the sizes that they state, and no code writes to it during the call.
    #[inline]
    pub(super) unsafe fn send(
        &mut self,
        socket: &UdpSocket,
        range: Range<usize>,
        flags: c_int,
    ) -> io::Result<usize> {
        let headers = &mut self.headers[range];
        // SAFETY: as in `receive`.
        let result = unsafe {
            libc::sendmmsg(
                socket.as_raw_fd(),
                headers.as_mut_ptr(),
                headers.len() as c_uint,
                flags | libc::MSG_NOSIGNAL,
            )
        };
        match Errno::result(result) {
            Ok(sent) => Ok(sent as usize),
            // A firewall says EPERM too, then to one datagram as well.
            Err(errno) if is_filtered(errno) && !headers.is_empty() => {
                let flags = flags | libc::MSG_NOSIGNAL;
                // SAFETY: as in `receive`.
                let result = unsafe {
                    libc::sendmsg(socket.as_raw_fd(), &raw const headers[0].msg_hdr, flags)
                };
                Errno::result(result)?;
                Ok(1)
            }
            Err(errno) => Err(errno.into()),
        }
    }
}

/// What filters of system calls answer, and old kernels.
fn is_filtered(errno: Errno) -> bool {
    matches!(errno, Errno::ENOSYS | Errno::EPERM | Errno::EACCES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_machine::thread::CallFilter;

    /// Sends and receives three datagrams in batches.
    fn exchange() {
        let (from, to) = (
            UdpSocket::bind("127.0.0.1:0").unwrap(),
            UdpSocket::bind("127.0.0.1:0").unwrap(),
        );
        from.connect(to.local_addr().unwrap()).unwrap();
        let mut room = [[0_u8; 8]; 4];
        let mut batch = Messages::<4>::new();
        for (i, bytes) in room.iter_mut().enumerate() {
            bytes[0] = i as u8;
            batch.buffer_mut(i).iov_base = bytes.as_mut_ptr().cast();
            batch.buffer_mut(i).iov_len = i + 1;
        }
        let mut sent = 0;
        while sent < 3 {
            // SAFETY: the buffers are those of `room`.
            sent += unsafe { batch.send(&from, sent..3, 0) }.unwrap();
        }
        (0..4).for_each(|i| batch.buffer_mut(i).iov_len = 2);
        let mut received = 0;
        while received < 3 {
            // SAFETY: as above.
            match unsafe { batch.receive(&to, 4) } {
                Ok(count) => {
                    // The third is longer than its room.
                    let lengths: Vec<usize> = (0..count).map(|i| batch.len(i)).collect();
                    assert_eq!(
                        lengths,
                        (received + 1..=received + count)
                            .map(|len| len.min(2))
                            .collect::<Vec<_>>()
                    );
                    received += count;
                }
                Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
            }
        }
    }

    #[test]
    fn a_filter_that_refuses_batches_keeps_no_datagram_back() {
        exchange();
        if let Some(why) = CallFilter::missing() {
            println!("SKIPPED batches that are refused: {why}");
            return;
        }
        for errno in [libc::ENOSYS, libc::EPERM] {
            let filtered = std::thread::spawn(move || {
                let batches = [libc::SYS_recvmmsg, libc::SYS_sendmmsg];
                CallFilter::refusing(&batches, errno).install().unwrap();
                exchange();
            });
            filtered.join().unwrap();
        }
    }
}
