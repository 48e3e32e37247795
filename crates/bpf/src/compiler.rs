//! Compiles C to an object that the kernel loads.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{fs, io};

/// The oldest clang whose BPF code the kernels accept.
const OLDEST_CLANG: u32 = 14;
/// Names by which distributions install it, newest first after the default.
const NEWEST_CLANG: u32 = 23;

/// Why there is no object.
#[derive(thiserror::Error)]
pub enum ObjectError {
    /// No clang, or only older ones.
    #[error(
        "the XDP program needs clang {OLDEST_CLANG} or newer: apt-get install clang libbpf-dev, or name one in HEADWAY_CLANG"
    )]
    NoClang,
    /// The clang named by the user does not run.
    #[error(
        "HEADWAY_CLANG names {clang}, which does not run ({source}): name a clang, or unset it"
    )]
    NoSuchClang {
        /// The compiler.
        clang: String,
        /// The system's error.
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
        /// Its messages.
        said: String,
    },
    /// Files could not be written or read.
    #[error("cannot {operation} {}: {source}", path.display())]
    Io {
        /// The operation.
        operation: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
}

headway_words::debug_is_display!(ObjectError);

/// A clang that compiles for BPF: the one that `HEADWAY_CLANG` names, or the first that is installed.
#[derive(Debug, Clone)]
pub struct Compiler {
    clang: String,
}

impl Compiler {
    /// Looks for the compiler.
    ///
    /// # Errors
    /// [`ObjectError::NoClang`], which says what to install.
    pub fn find() -> Result<Self, ObjectError> {
        let clang = find_clang().ok_or(ObjectError::NoClang)?;
        Ok(Self { clang })
    }

    /// Compiles each of `programs`, by its file's name without `.c`, in a folder of all `sources`, given by name and text. A source named
    /// `layout.h` is included before every program. Takes about half a second a program.
    ///
    /// # Errors
    /// [`ObjectError`] when headers are missing, and says what to install.
    pub fn compile<const N: usize>(
        &self,
        sources: &[(&str, &str)],
        programs: [&str; N],
    ) -> Result<[Vec<u8>; N], ObjectError> {
        let place =
            tempfile::tempdir().map_err(|source| io_error("create", Path::new("/tmp"), source))?;
        for (name, text) in sources {
            let path = place.path().join(name);
            fs::write(&path, text).map_err(|source| io_error("write", &path, source))?;
        }
        let mut objects = programs.map(|_| Vec::new());
        for (object, program) in objects.iter_mut().zip(programs) {
            *object = self.compile_one(place.path(), program)?;
        }
        Ok(objects)
    }

    fn compile_one(&self, place: &Path, name: &str) -> Result<Vec<u8>, ObjectError> {
        let object = place.join(format!("{name}.o"));
        let mut command = Command::new(&self.clang);
        command
            .current_dir(place)
            // Version 3 of the instruction set has atomic operations that return values; kernels know it since 5.12.
            .args(["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-Wall", "-Werror"])
            .arg("-c")
            .arg(format!("{name}.c"))
            .arg("-o")
            .arg(&object);
        if place.join("layout.h").exists() {
            command.args(["-include", "layout.h"]);
        }
        // The kernel's headers for this architecture, where Debian keeps them.
        let include = format!("/usr/include/{}-linux-gnu", std::env::consts::ARCH);
        if Path::new(&include).is_dir() {
            command.arg("-I").arg(include);
        }
        let output = command
            .output()
            .map_err(|source| ObjectError::NoSuchClang {
                clang: self.clang.clone(),
                source,
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            return Err(if said.contains("bpf_helpers.h' file not found") {
                ObjectError::NoHeaders
            } else {
                ObjectError::Refused {
                    clang: self.clang.clone(),
                    said,
                }
            });
        }
        fs::read(&object).map_err(|source| io_error("read", &object, source))
    }
}

fn io_error(operation: &'static str, path: &Path, source: io::Error) -> ObjectError {
    ObjectError::Io {
        operation,
        path: path.to_owned(),
        source,
    }
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
