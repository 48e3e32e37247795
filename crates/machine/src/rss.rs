//! How much memory this process holds.

use std::{fs, io};

/// The process's resident size in bytes, from `/proc/self/status`.
///
/// # Errors
///
/// When `/proc` is not mounted or does not have the kernel's format.
pub fn resident_bytes() -> io::Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = resident_kib(&status).ok_or_else(|| {
        let what = "/proc/self/status has no line `VmRSS: <number> kB`";
        io::Error::new(io::ErrorKind::InvalidData, what)
    })?;
    Ok(kib * 1024)
}

fn resident_kib(status: &str) -> Option<u64> {
    let value = status
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))?;
    value.trim().strip_suffix(" kB")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_memory_makes_it_resident() {
        const GROWTH_BYTES: usize = 64 << 20;
        let before = resident_bytes().unwrap();
        let block = std::hint::black_box(vec![1u8; GROWTH_BYTES]);
        let after = resident_bytes().unwrap();
        assert!(
            after >= before + GROWTH_BYTES as u64 / 2,
            "{before} → {after}"
        );
        drop(block);
    }

    #[test]
    fn the_resident_size_has_a_line_of_its_own() {
        assert_eq!(
            resident_kib("VmPeak:\t 9 kB\nVmRSS:\t  42 kB\nThreads: 1\n"),
            Some(42)
        );
        assert_eq!(resident_kib("VmPeak:\t 9 kB\n"), None);
    }
}
