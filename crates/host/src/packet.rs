//! Packets with descriptors, over a socket that keeps packet boundaries.

use nix::sys::socket::{
    AddressFamily, ControlMessage, MsgFlags, SockFlag, SockType, UnixAddr, accept4, connect,
    sendmsg, socket,
};
use std::io::{self, IoSlice};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// The longest packet.
pub(crate) const PACKET_BYTES_MAX: usize = 4096;
/// The most descriptors of one packet.
const FDS_MAX: usize = 4;
/// The most that the kernel lets anybody send in one (`SCM_MAX_FD`).
const SCM_MAX_FD: usize = 253;
/// Room for them behind a header, in words.
const CONTROL_WORDS: usize = (SCM_MAX_FD * size_of::<RawFd>()).div_ceil(8) + 4;

/// A received packet. All descriptors that came with it are its own, even if it has a fault.
#[derive(Debug, Default)]
pub(crate) struct HostPacket {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
    /// What is wrong with it.
    pub(crate) fault: Option<&'static str>,
}

/// A socket that is connected to this path.
pub(crate) fn connect_to(path: &Path) -> io::Result<OwnedFd> {
    let fd = socket(
        AddressFamily::Unix,
        SockType::SeqPacket,
        SockFlag::SOCK_CLOEXEC,
        None,
    )?;
    connect(fd.as_raw_fd(), &UnixAddr::new(path)?)?;
    Ok(fd)
}

/// The next connection of a listening socket.
pub(crate) fn accept(listener: impl AsFd, flags: SockFlag) -> io::Result<OwnedFd> {
    let raw = accept4(listener.as_fd().as_raw_fd(), SockFlag::SOCK_CLOEXEC | flags)?;
    Ok(own(raw))
}

/// Sends a packet, or fails at once when the other side does not read.
pub(crate) fn send(socket: impl AsFd, bytes: &[u8], fds: &[&OwnedFd]) -> io::Result<()> {
    let raw: Vec<RawFd> = fds.iter().map(|fd| fd.as_raw_fd()).collect();
    let rights = [ControlMessage::ScmRights(&raw)];
    let controls = if raw.is_empty() { &[][..] } else { &rights[..] };
    let flags = MsgFlags::MSG_DONTWAIT | MsgFlags::MSG_NOSIGNAL;
    let parts = [IoSlice::new(bytes)];
    sendmsg::<()>(socket.as_fd().as_raw_fd(), &parts, controls, flags, None)?;
    Ok(())
}

/// Sends a packet and waits for the answer; `None` when the other side hung up without one. One that answers and hangs up before it read the packet is
/// heard too: the system then tells of the end first.
pub(crate) fn ask(
    socket: impl AsFd,
    bytes: &[u8],
    fds: &[&OwnedFd],
) -> io::Result<Option<HostPacket>> {
    let has_ended = |error: &io::Error| {
        let kind = error.kind();
        kind == io::ErrorKind::BrokenPipe || kind == io::ErrorKind::ConnectionReset
    };
    match send(socket.as_fd(), bytes, fds) {
        Err(error) if !has_ended(&error) => return Err(error),
        _ => {}
    }
    match receive(socket.as_fd(), true) {
        Err(error) if has_ended(&error) => receive(socket, true),
        answer => answer,
    }
}

/// The next packet; `None` at the end of the connection. `waits`: whether to wait for one.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when no packet waits.
pub(crate) fn receive(socket: impl AsFd, waits: bool) -> io::Result<Option<HostPacket>> {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut flags = libc::MSG_CMSG_CLOEXEC;
    if !waits {
        flags |= libc::MSG_DONTWAIT;
    }
    let (length, flags, fds) = loop {
        match receive_into(socket.as_fd(), &mut bytes, flags) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => break other?,
        }
    };
    let fault = if flags & libc::MSG_TRUNC != 0 {
        Some("a packet has at most 4096 bytes")
    } else if flags & libc::MSG_CTRUNC != 0 || fds.len() > FDS_MAX {
        Some("a packet has at most 4 descriptors")
    } else {
        None
    };
    if length == 0 && fault.is_none() && fds.is_empty() {
        return Ok(None);
    }
    bytes.truncate(length);
    Ok(Some(HostPacket { bytes, fds, fault }))
}

/// Receives a packet: its length, its flags, and all of its descriptors. A packet has [`SCM_MAX_FD`] of them at most, for which there is room. The
/// kernel installs fewer where the process may have no more, and says so by a flag.
#[expect(
    unsafe_code,
    reason = "a wrapper that fails after the kernel installed descriptors loses them"
)]
fn receive_into(
    socket: BorrowedFd<'_>,
    bytes: &mut [u8],
    flags: i32,
) -> io::Result<(usize, i32, Vec<OwnedFd>)> {
    // Words, since control messages are aligned to them.
    let mut controls = [0_u64; CONTROL_WORDS];
    let mut part = libc::iovec {
        iov_base: bytes.as_mut_ptr().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all fields are integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = controls.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&controls);
    // SAFETY: everything that `message` points to outlives the call, and has the length that it says.
    let length = unsafe { libc::recvmsg(socket.as_raw_fd(), &raw mut message, flags) };
    let length = usize::try_from(length).map_err(|_| io::Error::last_os_error())?;
    let mut fds = Vec::new();
    // SAFETY: the kernel has filled `message`, whose control messages lie in `controls`.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(&raw const message) };
    // SAFETY: null, or a header in `controls`.
    while let Some(header) = unsafe { control.as_ref() } {
        if header.cmsg_level == libc::SOL_SOCKET && header.cmsg_type == libc::SCM_RIGHTS {
            // SAFETY: the header is in `controls`, and its data behind it.
            let data = unsafe { libc::CMSG_DATA(control) }.cast::<RawFd>();
            let count = (header.cmsg_len - size_of::<libc::cmsghdr>()) / size_of::<RawFd>();
            // SAFETY: the header's length is that of so many descriptors, which the kernel just made.
            let made = (0..count).map(|at| own(unsafe { data.add(at).read_unaligned() }));
            fds.extend(made);
        }
        // SAFETY: the header is one of `message`.
        control = unsafe { libc::CMSG_NXTHDR(&raw const message, control) };
    }
    Ok((length, message.msg_flags, fds))
}

#[expect(unsafe_code, reason = "a descriptor that the kernel just handed over")]
fn own(raw: RawFd) -> OwnedFd {
    // SAFETY: the kernel made this descriptor for the caller of this module, and no other value owns it.
    unsafe { OwnedFd::from_raw_fd(raw) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sys::socket::{SockFlag, SockType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let flags = SockFlag::SOCK_CLOEXEC;
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap()
    }

    #[test]
    fn every_descriptor_that_comes_is_owned_however_many_there_are() {
        let (sender, receiver) = pair();
        let (reader, writer) = nix::unistd::pipe().unwrap();
        for count in [1, FDS_MAX, FDS_MAX + 1, SCM_MAX_FD] {
            send(&sender, b"{}", &vec![&writer; count]).unwrap();
            let packet = receive(&receiver, true).unwrap().unwrap();
            assert_eq!(packet.fds.len(), count);
            assert_eq!(packet.fault.is_some(), count > FDS_MAX, "{count}");
        }
        // Once all are dropped, the pipe has no writer left.
        drop(writer);
        assert_eq!(nix::unistd::read(&reader, &mut [0]).unwrap(), 0);
    }

    #[test]
    fn what_is_too_long_has_a_fault_and_the_end_is_none() {
        let (sender, receiver) = pair();
        send(&sender, &[b' '; PACKET_BYTES_MAX + 1], &[]).unwrap();
        let packet = receive(&receiver, true).unwrap().unwrap();
        assert!(packet.fault.unwrap().contains("bytes"));
        let waits = receive(&receiver, false).unwrap_err();
        assert_eq!(waits.kind(), io::ErrorKind::WouldBlock);
        drop(sender);
        assert!(receive(&receiver, true).unwrap().is_none());
    }

    #[test]
    fn who_hangs_up_with_an_answer_is_heard() {
        for is_told_first in [false, true] {
            let (asker, other) = pair();
            // What nobody read makes the end an error.
            send(&asker, b"unread", &[]).unwrap();
            send(&other, b"no", &[]).unwrap();
            drop(other);
            if is_told_first {
                let end = receive(&asker, true).unwrap_err();
                assert_eq!(end.kind(), io::ErrorKind::ConnectionReset);
            }
            let answer = ask(&asker, b"asked", &[]).unwrap().unwrap();
            assert_eq!(answer.bytes, b"no");
        }
    }
}
