//! Experiments by name or file.

use crate::{ExperimentFile, NAMES, ReproduceError, catalogue};
use headway_words::nearest;
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use std::path::Path;

/// The names of all experiments that are measured on this machine, also where these are not built.
pub const MEASURED_NAMES: &[&str] = &[
    "concord-fig9-live",
    "synergy-leveldb-live",
    "synergy-fig6-5-live",
    "synergy-fig6-6-live",
    "synergy-fig6-7-live",
    "synergy-fig6-8-live",
    "synergy-zippydb-live",
    "pallas-fig10-live",
    "pallas-fig13a-live",
    "pallas-fig13b-live",
    "shenango-fig1-live",
    "shenango-fig4-live",
    "shenango-fig5-live",
];

/// The tables of their files, one a kind; simulated experiments have none of them.
const MEASURED_TABLES: [&str; 4] = ["class", "replay", "rack", "host"];

/// Whether the text of a file is an experiment that is measured on this machine.
fn is_measured(text: &str) -> bool {
    let table: Option<toml::Table> = toml::from_str(text).ok();
    table.is_some_and(|table| MEASURED_TABLES.iter().any(|name| table.contains_key(*name)))
}

/// Whether an experiment is named by its file.
#[must_use]
pub fn is_experiment_file(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension == "toml")
}

/// The error of a name that no experiment has.
#[must_use]
pub fn unknown_experiment(name: &str) -> ReproduceError {
    let remedy = match nearest(name, &[NAMES, MEASURED_NAMES].concat()) {
        Some(known) => format!("did you mean '{known}'?"),
        None => "`headway reproduce --list` says what there is".into(),
    };
    ReproduceError::Unknown {
        name: name.into(),
        remedy,
    }
}

impl ExperimentFile {
    /// The name and the text of a simulated experiment, built in or of a file, for [`read`](Self::read).
    ///
    /// # Errors
    /// There is no such experiment, its file cannot be read, or it is measured live.
    pub fn text(name_or_file: &str) -> Result<(String, String), ReproduceError> {
        if is_experiment_file(name_or_file) {
            let path = Path::new(name_or_file);
            let text = read_text(path, SETTINGS_BYTES_MAX)
                .map_err(|error| ReproduceError::file(name_or_file, error))?;
            if is_measured(&text) {
                return Err(ReproduceError::Live {
                    name: name_or_file.into(),
                });
            }
            let stem = path.file_stem().unwrap_or_default().to_string_lossy();
            return Ok((stem.into_owned(), text));
        }
        if let Some(text) = catalogue::text(name_or_file) {
            return Ok((name_or_file.into(), text.into()));
        }
        if MEASURED_NAMES.contains(&name_or_file) {
            return Err(ReproduceError::Live {
                name: name_or_file.into(),
            });
        }
        Err(unknown_experiment(name_or_file))
    }
}
