//! A check of this machine for `AF_XDP`.

use crate::program::compile;
use crate::system::xdp_socket;

/// The missing prerequisites of `AF_XDP`, each in a sentence with its remedy. Empty when the program compiles and the kernel has such sockets.
#[must_use]
pub fn missing() -> Vec<String> {
    let mut missing = headway_bpf::missing();
    if let Err(error) = xdp_socket() {
        missing.push(match error.raw_os_error() {
            Some(libc::EAFNOSUPPORT) => {
                "this kernel has no AF_XDP (CONFIG_XDP_SOCKETS): boot one that has".to_owned()
            }
            Some(libc::EPERM | libc::EACCES) => "AF_XDP needs root, or CAP_NET_RAW".to_owned(),
            _ => format!("the kernel refuses an AF_XDP socket: {error}"),
        });
    }
    if let Err(error) = compile() {
        missing.push(error.to_string());
    }
    missing
}
