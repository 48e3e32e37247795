//! Queries cargo for the package at hand.

use std::collections::BTreeSet;
use std::env;
use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use headway_words::hint;
use serde_json::Value;

use crate::arguments::CargoRequest;
use crate::failure::Failure;

/// The calling cargo, or the cargo in the path.
pub(crate) fn cargo() -> OsString {
    env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}

/// The compiler that cargo will call.
pub(crate) fn rustc() -> OsString {
    env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())
}

/// Runs a command to its end.
pub(crate) fn status(command: &mut Command) -> Result<ExitStatus, Failure> {
    command.status().map_err(|error| {
        let program = command.get_program().display();
        Failure::Impossible(format!("cannot run {program}: {error}"))
    })
}

/// The workspace of cargo's build.
#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) target: PathBuf,
    /// The names of all crates it is made of, as rustc writes them.
    names: BTreeSet<String>,
}

impl Package {
    /// Asks cargo, with the options of the request that matter for it.
    pub(crate) fn read(request: &CargoRequest) -> Result<Self, Failure> {
        let mut command = Command::new(cargo());
        command.args(["metadata", "--format-version", "1"]);
        if let Some(manifest) = request.value_of("--manifest-path") {
            command.arg("--manifest-path").arg(manifest);
        }
        for flag in ["--locked", "--offline", "--frozen"] {
            if request.has(flag) {
                command.arg(flag);
            }
        }
        if request.crates.is_empty() {
            command.arg("--no-deps"); // Of others no name is needed.
        }
        let output = command.output().map_err(|error| {
            let program = command.get_program().display();
            Failure::Impossible(format!("cannot run {program}: {error}"))
        })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(Failure::Impossible(
                said.trim_start_matches("error: ").trim_end().to_owned(),
            ));
        }
        Self::of_metadata(&output.stdout).ok_or_else(|| {
            Failure::Impossible("`cargo metadata` said nothing of a target directory".into())
        })
    }

    pub(crate) fn of_metadata(json: &[u8]) -> Option<Self> {
        let metadata: Value = serde_json::from_slice(json).ok()?;
        let targets = metadata["packages"].as_array()?.iter();
        let targets = targets
            .filter_map(|package| package["targets"].as_array())
            .flatten();
        let names = targets.filter_map(|target| target["name"].as_str());
        Some(Self {
            target: metadata["target_directory"].as_str()?.into(),
            names: names.map(|name| name.replace('-', "_")).collect(),
        })
    }

    /// Checks that these crates exist: a misspelt crate would silently get no probes.
    pub(crate) fn has_all(&self, crates: &[String]) -> Result<(), Failure> {
        let Some(missing) = crates.iter().find(|name| !self.names.contains(*name)) else {
            return Ok(());
        };
        let near = hint(missing, &self.names);
        Err(Failure::Usage(format!(
            "--crates: '{missing}' is no crate of this workspace or of what it depends on{near}"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const METADATA: &[u8] = br#"{"target_directory":"/t","packages":[
        {"name":"a-a","targets":[{"name":"a-a"},{"name":"tool"}]},{"name":"b","targets":[{"name":"b"}]}]}"#;

    #[test]
    fn names_are_those_of_crates_not_packages() {
        let package = Package::of_metadata(METADATA).unwrap();
        assert_eq!(package.target, PathBuf::from("/t"));
        package
            .has_all(&["a_a".into(), "b".into(), "tool".into()])
            .unwrap();
        match package.has_all(&["toul".into()]) {
            Err(Failure::Usage(text)) => assert!(text.ends_with("did you mean 'tool'?"), "{text}"),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_is_no_metadata_is_none() {
        assert!(Package::of_metadata(b"{}").is_none());
        assert!(Package::of_metadata(b"cargo").is_none());
    }
}
