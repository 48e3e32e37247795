//! The wrapper around rustc, `headway-rustc`: its search, and the check that its pass fits the toolchain.

use std::env;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::Failure;

const NAME: &str = "headway-rustc";

const WITHOUT: &str =
    "without the pass, mark functions with #[headway::preemptible] and build with plain cargo";

/// The wrapper.
#[derive(Debug)]
pub(crate) struct Wrapper {
    pub(crate) path: PathBuf,
}

/// The compiler pass.
#[derive(Debug)]
pub(crate) struct Pass {
    /// All its files, by which a new pass is noticed.
    pub(crate) files: Vec<PathBuf>,
    /// The library that probes call where there is no runtime.
    pub(crate) probes: PathBuf,
}

impl Wrapper {
    /// Finds the wrapper beside the pass, beside this program, in the source trees of either, or in the path.
    pub(crate) fn find() -> Result<Self, Failure> {
        let pass = env::var_os("HEADWAY_PASS_DIR").map(PathBuf::from);
        let program = env::current_exe().and_then(|path| path.canonicalize()).ok();
        let mut directories = candidates(pass.as_deref(), program.as_deref());
        if let Ok(here) = env::current_dir() {
            directories.extend(sources_around(&here));
        }
        if let Some(path) = env::var_os("PATH") {
            directories.extend(env::split_paths(&path));
        }
        let paths = directories.iter().map(|directory| directory.join(NAME));
        match paths.into_iter().find(|path| path.is_file()) {
            Some(path) => Ok(Self {
                path: path.canonicalize().unwrap_or(path),
            }),
            None => Err(Failure::Impossible(format!(
                "{NAME}, which loads the compiler pass, was not found\n\
                 hint: `make pass` builds it in Headway's sources and `make install-pass` installs it; HEADWAY_PASS_DIR says \
                 where its plugin is\n\
                 hint: {WITHOUT}"
            ))),
        }
    }

    /// Checks that the pass exists and fits this rustc.
    pub(crate) fn check(&self, rustc: &OsStr) -> Result<Pass, Failure> {
        let mut command = Command::new(&self.path);
        command.arg("--headway-check").arg(rustc);
        let output = command.output().map_err(|error| {
            Failure::Impossible(format!("cannot run {}: {error}", self.path.display()))
        })?;
        let lines = |bytes: &[u8]| {
            String::from_utf8_lossy(bytes)
                .lines()
                .map(str::to_owned)
                .collect::<Vec<_>>()
        };
        if output.status.success() {
            let parts: Vec<PathBuf> = lines(&output.stdout)
                .into_iter()
                .map(PathBuf::from)
                .collect();
            let [plugin, probes] = parts.as_slice() else {
                return Err(Failure::Impossible(format!(
                    "{NAME} does not name the parts of the pass"
                )));
            };
            let files = vec![plugin.clone(), probes.clone(), self.path.clone()];
            let probes = probes.clone();
            return Ok(Pass { files, probes });
        }
        let said = lines(&output.stderr).join("\n");
        Err(Failure::Impossible(format!("{said}\nhint: {WITHOUT}")))
    }
}

/// In order: as the pass's directory says (installed, or in the sources), as this program's says.
fn candidates(pass: Option<&Path>, program: Option<&Path>) -> Vec<PathBuf> {
    let mut directories = Vec::new();
    if let Some(pass) = pass {
        directories.push(pass.join("../../bin")); // PREFIX/lib/headway
        directories.push(pass.join("../../../pass/bin")); // target/pass/lib
    }
    if let Some(directory) = program.and_then(Path::parent) {
        directories.push(directory.to_owned());
        directories.extend(sources_around(directory));
    }
    directories
}

/// The wrappers' directory in each directory above.
fn sources_around(place: &Path) -> impl Iterator<Item = PathBuf> {
    place.ancestors().map(|above| above.join("pass/bin"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pass_is_asked_before_the_program_and_both_installed_or_in_sources() {
        let found = candidates(
            Some(Path::new("/p/lib/headway")),
            Some(Path::new("/s/target/release/cargo-headway")),
        );
        let at = |path: &str| {
            found
                .iter()
                .position(|one| one == Path::new(path))
                .expect(path)
        };
        assert_eq!(at("/p/lib/headway/../../bin"), 0);
        assert!(at("/s/target/release") > at("/p/lib/headway/../../../pass/bin"));
        assert!(at("/s/pass/bin") > at("/s/target/release"));
    }

    #[test]
    fn nothing_known_is_nowhere_to_look() {
        assert!(candidates(None, None).is_empty());
    }
}
