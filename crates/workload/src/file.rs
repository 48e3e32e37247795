//! Input files, read up to a bound: a device or a wrong file must not fill the memory.

use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result};
use std::path::Path;

/// Most bytes of a file of settings, costs, a workload or results: 64 MiB.
pub const SETTINGS_BYTES_MAX: u64 = 64 << 20;
/// Most bytes of a trace or of recorded service times: 256 MiB. In memory a trace takes several times as much.
pub const TRACE_BYTES_MAX: u64 = 256 << 20;

/// Reads a text of at most `most_bytes`.
///
/// # Errors
/// When the file cannot be opened or read, is not UTF-8, or is longer.
pub fn read_text(path: &Path, most_bytes: u64) -> Result<String> {
    let mut text = String::new();
    let mut bounded = File::open(path)?.take(most_bytes + 1);
    bounded.read_to_string(&mut text)?;
    if text.len() as u64 <= most_bytes {
        return Ok(text);
    }
    let most_mib = most_bytes >> 20;
    Err(Error::new(
        ErrorKind::FileTooLarge,
        format!(
            "longer than {most_mib} MiB, the most that is read; name a shorter file, or a part of this one"
        ),
    ))
}

/// Reads a regular file only: a pipe may never end.
pub(crate) fn read_regular(path: &Path, most_bytes: u64) -> Result<String> {
    if !std::fs::metadata(path)?.is_file() {
        return Err(Error::other("not a regular file"));
    }
    read_text(path, most_bytes)
}

/// A file's name without its extension.
pub(crate) fn file_stem(path: &Path) -> String {
    let stem = path.file_stem().unwrap_or(path.as_os_str());
    Path::new(stem).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_without_end_is_refused() {
        let error = read_text(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert!(
            error.to_string().starts_with("longer than 1 MiB"),
            "{error}"
        );
        let error = read_regular(Path::new("/dev/zero"), 1 << 20).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file");
    }

    #[test]
    fn a_text_may_have_exactly_the_most_bytes() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
        let bytes = std::fs::metadata(&path).unwrap().len();
        assert_eq!(read_text(&path, bytes).unwrap().len() as u64, bytes);
        assert!(read_text(&path, bytes - 1).is_err());
    }
}
