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
        Ok(Errno::result(result)? as usize)
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
        Ok(Errno::result(result)? as usize)
    }
}
