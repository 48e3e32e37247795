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

/// Requests a large receive buffer: beyond the system's limit if privileged, otherwise up to it.
pub(super) fn enlarge_receive_buffer(socket: &impl AsFd) -> Result<(), Errno> {
    setsockopt(socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES)
        .or_else(|_| setsockopt(socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES))
}

/// Lets further sockets of this user bind the port.
pub(super) fn share_port(socket: &impl AsFd) -> io::Result<()> {
    Ok(setsockopt(socket, sockopt::ReusePort, &true)?)
}

/// An instruction of a steering program (classic BPF).
pub(super) type Instruction = libc::sock_filter;

/// Loads a byte of the datagram, counted from 0. A program that loads a byte beyond the datagram returns 0.
pub(super) fn load_byte(byte: u32) -> Instruction {
    instruction(libc::BPF_LD | libc::BPF_B | libc::BPF_ABS, byte)
}

/// Loads a random word.
pub(super) fn load_random() -> Instruction {
    let random = (libc::SKF_AD_OFF + libc::SKF_AD_RANDOM) as u32;
    instruction(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, random)
}

/// Divides the word loaded and keeps the remainder.
pub(super) fn modulo(divisor: u32) -> Instruction {
    instruction(libc::BPF_ALU | libc::BPF_MOD | libc::BPF_K, divisor)
}

/// Ends the program with the word at hand as its result.
pub(super) fn return_accumulator() -> Instruction {
    const BPF_A: u32 = 0x10;
    instruction(libc::BPF_RET | BPF_A, 0)
}

fn instruction(code: u32, k: u32) -> Instruction {
    Instruction {
        code: code as u16,
        jt: 0,
        jf: 0,
        k,
    }
}

/// Makes the kernel deliver each datagram to the socket of the port's group whose index the program returns. It needs no privileges.
pub(super) fn steer(socket: &impl AsFd, program: &mut [Instruction]) -> io::Result<()> {
    let program = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: `program` and the instructions it points to have the sizes given and outlive the call.
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
