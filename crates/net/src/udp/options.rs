//! Socket options that the standard library lacks.
#![expect(
    unsafe_code,
    reason = "SO_MEMINFO and SO_ATTACH_REUSEPORT_CBPF have no safe wrapper"
)]

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use nix::errno::Errno;
use nix::sys::socket::{setsockopt, sockopt};

/// Datagrams that arrive while the receiver is away wait here; at 0.4 M/s of small ones, which the kernel charges
/// 768 bytes each, 8 MiB last for 27 ms.
const RECEIVE_BUFFER_BYTES: usize = 8 << 20;

/// Asks for a large receive buffer, beyond the system's limit if privileged, else up to it.
pub(super) fn enlarge_receive_buffer(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES))
}

/// Lets further sockets of this user bind the port.
pub(super) fn share_port(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReusePort, &true)?)
}

/// Makes the kernel give each datagram to a socket of the port's group drawn at random.
pub(super) fn spread_at_random(socket: &impl AsFd, sockets: u32) -> io::Result<()> {
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    let mut filter = [
        statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, random),
        statement(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, sockets),
        statement(libc::BPF_RET | BPF_A, 0),
    ];
    let program = libc::sock_fprog {
        len: filter.len() as u16,
        filter: filter.as_mut_ptr(),
    };
    // SAFETY: `program` and the filter it points to have the sizes given and outlive the call.
    let result = unsafe {
        libc::setsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_ATTACH_REUSEPORT_CBPF,
            (&raw const program).cast(),
            size_of::<libc::sock_fprog>() as libc::socklen_t,
        )
    };
    Ok(Errno::result(result).map(drop)?)
}

const BPF_A: u32 = 0x10;

fn statement(code: u32, k: u32) -> libc::sock_filter {
    libc::sock_filter {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// The kernel's account of a socket's queue.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    /// Bytes of memory taken by waiting datagrams, headers and slack included.
    pub(super) waiting_bytes: u32,
    /// Datagrams dropped because the buffer was full, since the socket was opened.
    pub(super) drops: u32,
}

pub(super) fn memory(socket: &impl AsFd) -> io::Result<Memory> {
    let mut values = [0u32; libc::SK_MEMINFO_DROPS as usize + 1];
    let mut bytes = size_of_val(&values) as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `values`, and the number written to `bytes`.
    let result = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_MEMINFO,
            values.as_mut_ptr().cast(),
            &raw mut bytes,
        )
    };
    Errno::result(result)?;
    Ok(Memory {
        waiting_bytes: values[libc::SK_MEMINFO_RMEM_ALLOC as usize],
        drops: values[libc::SK_MEMINFO_DROPS as usize],
    })
}
