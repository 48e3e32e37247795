//! System calls that the kernel refuses to one thread.

use libc::{c_int, c_long};

/// Has the kernel answer `errno` to these system calls of the calling thread, and of threads that it starts, from now on (seccomp).
pub(crate) fn refuse(calls: &[c_long], errno: c_int) {
    let statement = |code: u32, jt: usize, k: u32| libc::sock_filter {
        code: code as u16,
        jt: jt as u8,
        jf: 0,
        k,
    };
    let mut program = vec![statement(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0)];
    for (at, call) in calls.iter().enumerate() {
        let equal = libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K;
        // Over the other calls and the statement that allows.
        program.push(statement(equal, calls.len() - at, *call as u32));
    }
    let refused = libc::SECCOMP_RET_ERRNO | errno as u32;
    for verdict in [libc::SECCOMP_RET_ALLOW, refused] {
        program.push(statement(libc::BPF_RET | libc::BPF_K, 0, verdict));
    }
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // SAFETY: the filter and its program live during the calls, which concern this thread alone.
    unsafe {
        assert_eq!(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
        let mode = libc::SECCOMP_MODE_FILTER;
        let filter = &raw const filter;
        assert_eq!(libc::prctl(libc::PR_SET_SECCOMP, mode, filter), 0);
    }
}
