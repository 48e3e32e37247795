//! The name of this thread's network namespace.
#![expect(unsafe_code, reason = "the socket option has no safe wrapper")]

use std::io;
use std::net::{Ipv4Addr, UdpSocket};
use std::os::fd::AsRawFd as _;

/// The kernel's own number of the namespace, which no later one gets until the machine starts anew. The number of its file is given away as soon as the
/// namespace ends, and a switch must not take up what was another's.
///
/// # Errors
/// Those of a kernel before Linux 5.14, or without sockets.
pub(crate) fn cookie() -> io::Result<u64> {
    let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut cookie = 0_u64;
    let mut bytes = size_of::<u64>() as libc::socklen_t;
    // SAFETY: the kernel writes at most `bytes` bytes to `cookie`, which has as many.
    let result = unsafe {
        libc::getsockopt(
            socket.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_NETNS_COOKIE,
            (&raw mut cookie).cast(),
            &raw mut bytes,
        )
    };
    if result == 0 {
        Ok(cookie)
    } else {
        Err(io::Error::last_os_error())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::sched::{CloneFlags, unshare};
    use std::collections::HashMap;
    use std::os::unix::fs::MetadataExt as _;
    use std::time::{Duration, Instant};

    fn can_unshare() -> bool {
        let tried = std::thread::spawn(|| unshare(CloneFlags::CLONE_NEWNET).is_ok());
        tried.join().unwrap_or(false)
    }

    #[test]
    fn no_namespace_gets_the_name_of_one_that_ended() {
        if !can_unshare() {
            println!("SKIPPED names of namespaces: this machine permits none");
            return;
        }
        let names = || {
            unshare(CloneFlags::CLONE_NEWNET).expect("a network namespace");
            let file = std::fs::metadata("/proc/thread-self/ns/net").expect("its file");
            (file.ino(), cookie().expect("its name"))
        };
        let mut cookie_of = HashMap::new();
        let begun = Instant::now();
        // The kernel removes a namespace a while after its last thread ended, and gives the number of its file away.
        loop {
            let (file, cookie) = std::thread::spawn(names).join().expect("the names");
            assert!(!cookie_of.values().any(|other| *other == cookie));
            if cookie_of.insert(file, cookie).is_some() {
                return;
            }
            assert!(begun.elapsed() < Duration::from_secs(60), "in vain");
        }
    }
}
