//! The prerequisites for BPF programs, checked before one is compiled.

use std::fs;

/// The oldest kernel with every feature of the programs.
const OLDEST_KERNEL: (u32, u32) = (5, 15);
/// `CAP_NET_ADMIN` and `CAP_BPF`, as bits of the effective set.
const CAPABILITIES: u64 = 1 << 12 | 1 << 39;

/// The prerequisites of an XDP program that the kernel and process lack, each in a sentence with its remedy.
#[must_use]
pub fn missing() -> Vec<String> {
    let mut missing = Vec::new();
    // The system call, not /proc, which is missing in some containers.
    let kernel = nix::sys::utsname::uname();
    let release = kernel.as_ref().ok().and_then(|it| it.release().to_str());
    missing.extend(release.and_then(too_old));
    // Without /proc nothing is known of the capabilities, and the kernel says so itself when a program is loaded.
    let status = fs::read_to_string("/proc/self/status");
    if status.is_ok_and(|status| effective(&status) & CAPABILITIES != CAPABILITIES) {
        missing.push("it needs root, or CAP_BPF and CAP_NET_ADMIN".to_owned());
    }
    missing
}

/// What to say of a kernel that is older than [`OLDEST_KERNEL`]; nothing of one whose version is unknown.
fn too_old(release: &str) -> Option<String> {
    let is_older = version_of(release).is_some_and(|version| version < OLDEST_KERNEL);
    is_older.then(|| format!("Linux {release} is older than 5.15: boot a newer one"))
}

fn version_of(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    Some((major, numbers.next()?.parse().ok()?))
}

/// The effective capabilities of `/proc/self/status`.
fn effective(status: &str) -> u64 {
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok())
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernels_and_capabilities_are_read() {
        assert_eq!(version_of("6.18.44-fc\n"), Some((6, 18)));
        assert_eq!(version_of("5.4.0"), Some((5, 4)));
        assert_eq!(version_of("odd"), None);
        assert_eq!(too_old("6.18.44-fc"), None);
        assert_eq!(too_old("odd"), None, "nothing is known");
        let said = too_old("5.4.0").unwrap();
        assert!(said.contains("5.4.0 is older than 5.15"), "{said}");
        let status = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert_eq!(effective(status) & CAPABILITIES, CAPABILITIES);
        assert_eq!(effective("CapEff:\t0000000000000000\n"), 0);
    }
}
