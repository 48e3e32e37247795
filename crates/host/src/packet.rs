//! Packets with descriptors, over a socket that keeps packet boundaries.

use nix::cmsg_space;
use nix::errno::Errno;
use nix::sys::socket::{
    AddressFamily, ControlMessage, ControlMessageOwned, MsgFlags, SockFlag, SockType, UnixAddr,
    accept4, connect, recvmsg, sendmsg, socket,
};
use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::path::Path;

/// The longest packet.
pub(crate) const PACKET_BYTES_MAX: usize = 4096;
/// The most descriptors of one packet.
const FDS_MAX: usize = 4;

/// A received packet.
#[derive(Debug, Default)]
pub(crate) struct HostPacket {
    pub(crate) bytes: Vec<u8>,
    pub(crate) fds: Vec<OwnedFd>,
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

/// The next packet; `None` at the end of the connection. `waits`: whether to wait for one.
///
/// # Errors
/// [`io::ErrorKind::WouldBlock`] when no packet waits; [`io::ErrorKind::InvalidData`] when it is too long.
pub(crate) fn receive(socket: impl AsFd, waits: bool) -> io::Result<Option<HostPacket>> {
    let mut bytes = vec![0; PACKET_BYTES_MAX];
    let mut space = cmsg_space!([RawFd; FDS_MAX]);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let mut flags = MsgFlags::MSG_CMSG_CLOEXEC;
    flags.set(MsgFlags::MSG_DONTWAIT, !waits);
    let received = loop {
        let raw = socket.as_fd().as_raw_fd();
        match recvmsg::<()>(raw, &mut parts, Some(&mut space), flags) {
            Err(Errno::EINTR) => {}
            other => break other?,
        }
    };
    let mut fds = Vec::new();
    for control in received.cmsgs()? {
        if let ControlMessageOwned::ScmRights(raw) = control {
            fds.extend(raw.into_iter().map(own));
        }
    }
    let cut = received.flags.intersects(MsgFlags::MSG_TRUNC);
    let length = received.bytes;
    if cut {
        let what = format!("a packet has at most {PACKET_BYTES_MAX} bytes");
        return Err(io::Error::new(io::ErrorKind::InvalidData, what));
    }
    if length == 0 {
        return Ok(None);
    }
    bytes.truncate(length);
    Ok(Some(HostPacket { bytes, fds }))
}

#[expect(unsafe_code, reason = "a descriptor that the kernel just handed over")]
fn own(raw: RawFd) -> OwnedFd {
    // SAFETY: the kernel made this descriptor for the caller of this module, and no other value owns it.
    unsafe { OwnedFd::from_raw_fd(raw) }
}
