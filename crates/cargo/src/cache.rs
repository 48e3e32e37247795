//! The target directories for compiled code: one for each choice of probes, emptied when the pass is new.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use crate::arguments::{CargoRequest, ProbeSource};
use crate::cargo::Package;
use crate::failure::Failure;

/// The file that names the pass of a directory's content; only a directory with this file is emptied.
const STAMP: &str = ".headway-pass";

/// The directory for this run: `headway` in cargo's target directory, or a subdirectory of it for other probes than the default.
pub(crate) fn directory(package: &Package, request: &CargoRequest) -> Result<PathBuf, Failure> {
    if request.value_of("--target-dir").is_some() {
        return Err(Failure::Usage(
            "--target-dir: cargo would take what it finds there for code with these probes; set CARGO_TARGET_DIR, \
             in which `headway` is a directory of its own"
                .into(),
        ));
    }
    Ok(package.target.join("headway").join(variant(request)))
}

/// A name for the options that differ from the default; empty if none does.
fn variant(request: &CargoRequest) -> String {
    let mut parts = Vec::new();
    if request.probe != ProbeSource::default() {
        parts.push(request.probe.name().to_owned());
    }
    parts.extend(request.distance.map(|distance| format!("every-{distance}")));
    if !request.crates.is_empty() {
        parts.push(format!("in-{}", request.crates.join("+")));
    }
    if request.report.is_some() {
        parts.push("report".to_owned());
    }
    parts.join("-")
}

/// Empties the directory if another pass filled it, or if everything is to be compiled anew for a report.
pub(crate) fn prepare(
    directory: &Path,
    request: &CargoRequest,
    pass: &[PathBuf],
) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        Failure::Impossible(format!("cannot prepare {}: {error}", directory.display()))
    };
    let stamp = directory.join(STAMP);
    let now = identity(pass).map_err(failed)?;
    match fs::read_to_string(&stamp) {
        Ok(before) if before == now && request.report.is_none() => return Ok(()),
        Ok(before) => {
            if before != now {
                headway_words::remark!("note: the compiler pass has changed: building anew");
            }
            fs::remove_dir_all(directory).map_err(failed)?;
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    fs::create_dir_all(directory).map_err(failed)?;
    fs::write(stamp, now).map_err(failed)
}

/// Each file with its size and the time of its last change.
fn identity(files: &[PathBuf]) -> io::Result<String> {
    let mut text = String::new();
    for file in files {
        let about = fs::metadata(file)?;
        let changed = about
            .modified()?
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let _ = writeln!(
            text,
            "{} {} {}",
            file.display(),
            about.len(),
            changed.as_nanos()
        );
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_choice_has_a_directory_of_its_own() {
        let choices = [
            CargoRequest::default(),
            CargoRequest {
                probe: ProbeSource::Tsc,
                ..CargoRequest::default()
            },
            CargoRequest {
                distance: Some(2000),
                ..CargoRequest::default()
            },
            CargoRequest {
                crates: vec!["a".into(), "b".into()],
                ..CargoRequest::default()
            },
            CargoRequest {
                report: Some("r".into()),
                ..CargoRequest::default()
            },
            CargoRequest {
                probe: ProbeSource::Tsc,
                distance: Some(2000),
                ..CargoRequest::default()
            },
        ];
        let names = choices.each_ref().map(variant);
        assert_eq!(
            names,
            [
                "",
                "tsc",
                "every-2000",
                "in-a+b",
                "report",
                "tsc-every-2000"
            ]
        );
    }

    #[test]
    fn a_new_pass_empties_its_directory_and_no_other() {
        let scratch = tempfile::tempdir().unwrap();
        let plugin = scratch.path().join("plugin.so");
        let (ours, other) = (scratch.path().join("ours"), scratch.path().join("other"));
        let fill = |directory: &Path| {
            fs::create_dir_all(directory).unwrap();
            fs::write(directory.join("object"), "").unwrap();
        };
        let pass = [plugin.clone()];
        let (plain, report) = (
            CargoRequest::default(),
            CargoRequest {
                report: Some("r".into()),
                ..CargoRequest::default()
            },
        );

        fs::write(&plugin, "one").unwrap();
        prepare(&ours, &plain, &pass).unwrap();
        fill(&ours);
        prepare(&ours, &plain, &pass).unwrap();
        assert!(ours.join("object").exists(), "the same pass");
        fs::write(&plugin, "another").unwrap();
        prepare(&ours, &plain, &pass).unwrap();
        assert!(!ours.join("object").exists(), "another pass");
        fill(&ours);
        prepare(&ours, &report, &pass).unwrap();
        assert!(!ours.join("object").exists(), "a report");

        fill(&other);
        prepare(&other, &plain, &pass).unwrap();
        assert!(
            other.join("object").exists(),
            "it has no stamp, so it is not ours"
        );
    }

    #[test]
    fn a_target_directory_of_cargos_is_refused() {
        let request = CargoRequest {
            cargo: ["build", "--target-dir", "x"].map(Into::into).into(),
            ..CargoRequest::default()
        };
        let package = Package::of_metadata(br#"{"target_directory":"/t","packages":[]}"#).unwrap();
        assert!(matches!(
            directory(&package, &request),
            Err(Failure::Usage(_))
        ));
        assert_eq!(
            directory(&package, &CargoRequest::default()).unwrap(),
            Path::new("/t/headway")
        );
    }
}
