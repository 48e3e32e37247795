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
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    if version_of(&release).is_none_or(|version| version < OLDEST_KERNEL) {
        let release = release.trim();
        missing.push(format!(
            "Linux {release} is older than 5.15: boot a newer one"
        ));
    }
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    if effective(&status) & CAPABILITIES != CAPABILITIES {
        missing.push("it needs root, or CAP_BPF and CAP_NET_ADMIN".to_owned());
    }
    missing
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
        let status = "Name:\tx\nCapEff:\t000001ffffffffff\n";
        assert_eq!(effective(status) & CAPABILITIES, CAPABILITIES);
        assert_eq!(effective("CapEff:\t0000000000000000\n"), 0);
    }
}
