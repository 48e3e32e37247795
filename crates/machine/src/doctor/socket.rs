//! Sockets opened only to see whether the system permits them.
#![expect(unsafe_code, reason = "these socket options have no safe wrapper")]

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socket, sockopt};

/// Attaches a filter that always chooses the first socket of a group.
pub(super) fn attach_reuseport_filter() -> Result<(), Errno> {
    let flags = SockFlag::SOCK_CLOEXEC;
    let socket = socket(AddressFamily::Inet, SockType::Datagram, flags, None)?;
    setsockopt(&socket, sockopt::ReusePort, &true)?;
    let mut choose_first = [libc::sock_filter {
        code: (libc::BPF_RET | libc::BPF_K) as u16,
        jt: 0,
        jf: 0,
        k: 0,
    }];
    let program = libc::sock_fprog {
        len: 1,
        filter: choose_first.as_mut_ptr(),
    };
    // SAFETY: `program` and the filter it points to have the size given and outlive the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    Errno::result(result).map(drop)
}

/// Opens an AF_XDP socket.
pub(super) fn open_xdp() -> Result<(), Errno> {
    // SAFETY: no memory is passed.
    let fd = unsafe { libc::socket(libc::AF_XDP, libc::SOCK_RAW | libc::SOCK_CLOEXEC, 0) };
    let fd = Errno::result(fd)?;
    // SAFETY: the call succeeded, so `fd` is open and nobody else's.
    drop(unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(())
}
