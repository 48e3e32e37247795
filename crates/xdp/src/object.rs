//! The program's object, built by clang when it is needed: no binary is part of the source.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

const SOURCES: [(&str, &str); 8] = [
    ("rack.bpf.c", include_str!("../bpf/rack.bpf.c")),
    ("bare.bpf.c", include_str!("../bpf/bare.bpf.c")),
    ("packet.h", include_str!("../bpf/packet.h")),
    ("tables.h", include_str!("../bpf/tables.h")),
    ("nat.h", include_str!("../bpf/nat.h")),
    ("burst.h", include_str!("../bpf/burst.h")),
    ("clones.h", include_str!("../bpf/clones.h")),
    ("shed.h", include_str!("../bpf/shed.h")),
];

/// The oldest clang whose BPF code the kernels take.
const OLDEST_CLANG: u32 = 14;
/// Names by which distributions install it, newest first after the default.
const NEWEST_CLANG: u32 = 23;

/// Why there is no object.
#[derive(Debug, thiserror::Error)]
pub enum ObjectError {
    /// No clang, or only older ones.
    #[error(
        "the XDP program needs clang {OLDEST_CLANG} or newer: apt-get install clang libbpf-dev, or name one in HEADWAY_CLANG"
    )]
    NoClang,
    /// The clang that was named does not run.
    #[error(
        "HEADWAY_CLANG names {clang}, which does not run ({source}): name a clang, or unset it"
    )]
    NoSuchClang {
        /// The compiler.
        clang: String,
        /// Why.
        source: io::Error,
    },
    /// libbpf's headers are not installed.
    #[error("the XDP program needs the headers of libbpf: apt-get install libbpf-dev")]
    NoHeaders,
    /// clang refused the program.
    #[error("{clang} cannot compile the XDP program:\n{said}")]
    Refused {
        /// The compiler.
        clang: String,
        /// What it said.
        said: String,
    },
    /// Files could not be written or read.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// What was tried.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// Why it failed.
        source: io::Error,
    },
}

/// The compiled programs.
#[derive(Debug, Clone)]
pub struct XdpObjects {
    /// The switch.
    pub rack: Vec<u8>,
    /// Programs that the switch is measured and tested with: one that sends each packet back, one that passes it on.
    pub bare: Vec<u8>,
}

/// Compiles the programs, in a second or so, with `HEADWAY_CLANG` or the first clang that is installed.
///
/// # Errors
/// [`ObjectError`] when the compiler or its headers are missing, and says what to install.
pub fn compile() -> Result<XdpObjects, ObjectError> {
    let clang = find_clang().ok_or(ObjectError::NoClang)?;
    let place =
        tempfile::tempdir().map_err(|source| io_error("create", Path::new("/tmp"), source))?;
    let layout = crate::layout::asserts(&crate::registers::COUNT_NAMES);
    for (name, text) in SOURCES.into_iter().chain([("layout.h", layout.as_str())]) {
        let path = place.path().join(name);
        fs::write(&path, text).map_err(|source| io_error("write", &path, source))?;
    }
    Ok(XdpObjects {
        rack: compile_one(&clang, place.path(), "rack.bpf")?,
        bare: compile_one(&clang, place.path(), "bare.bpf")?,
    })
}

fn io_error(operation: &'static str, path: &Path, source: io::Error) -> ObjectError {
    ObjectError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
}

fn compile_one(clang: &str, place: &Path, name: &str) -> Result<Vec<u8>, ObjectError> {
    let object = place.join(format!("{name}.o"));
    let mut command = Command::new(clang);
    command
        .current_dir(place)
        // Version 3 of the instruction set has atomic operations that return values; kernels know it since 5.12.
        .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror"])
        .args(["-include", "layout.h", "-c"])
        .arg(format!("{name}.c"))
        .arg("-o")
        .arg(&object);
    // The kernel's headers for this architecture, where Debian keeps them.
    let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
    if Path::new(&include).is_dir() {
        command.arg("-I").arg(include);
    }
    let output = command
        .output()
        .map_err(|source| ObjectError::NoSuchClang {
            clang: clang.to_owned(),
            source,
        })?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        return Err(if said.contains("bpf_helpers.h' file not found") {
            ObjectError::NoHeaders
        } else {
            ObjectError::Refused {
                clang: clang.to_owned(),
                said,
            }
        });
    }
    fs::read(&object).map_err(|source| io_error("read", &object, source))
}

fn find_clang() -> Option<String> {
    if let Ok(named) = std::env::var("HEADWAY_CLANG") {
        return Some(named);
    }
    let numbered = (OLDEST_CLANG..=NEWEST_CLANG)
        .rev()
        .map(|version| format!("clang-{version}"));
    std::iter::once("clang".to_owned())
        .chain(numbered)
        .find(|name| version_of(name).is_some_and(|version| version >= OLDEST_CLANG))
}

/// The major version of a clang; `None` when there is none of this name.
fn version_of(name: &str) -> Option<u32> {
    let output = Command::new(name).arg("-dumpversion").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    text.split('.').next()?.trim().parse().ok()
}
