//! Workloads by name or from a file.

use std::path::Path;

use crate::error::{Error, UnknownWorkload, unreadable};
use crate::file::{SETTINGS_BYTES_MAX, file_stem, read_regular};
use crate::names::NAMES;
use crate::toml_read;
use crate::trace::Trace;
use crate::workload::Workload;
use headway_words::nearest;

impl Workload {
    /// The workload called `name_or_path`: a [`Workload::named`] one, else a `.csv` trace, else a
    /// workload file.
    ///
    /// # Errors
    /// [`Error::Unknown`], with the nearest name, when it is neither a name nor an existing file
    /// and does not look like a path; otherwise the errors of reading the file.
    pub fn resolve(name_or_path: &str) -> Result<Self, Error> {
        if let Some(workload) = Self::named(name_or_path) {
            return Ok(workload);
        }
        let path = Path::new(name_or_path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("csv") => Ok(Trace::read(path)?.into_workload(file_stem(path))),
            Some("toml") => Self::from_toml_file(path),
            _ if path.is_file() || path.components().count() > 1 => Self::from_toml_file(path),
            _ => Err(unknown(name_or_path).into()),
        }
    }

    /// Reads a workload file; see the [crate's documentation](crate) for its format.
    ///
    /// # Errors
    /// [`Error::Read`] when it, or a file it refers to, cannot be read; [`Error::Located`] for a
    /// mistake in one of them.
    pub fn from_toml_file(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let text = read_regular(path, SETTINGS_BYTES_MAX)
            .map_err(|source| unreadable("workload", path.to_owned(), source))?;
        Self::from_toml_str(&text, path)
    }

    /// Reads a workload from a text. `path` is named in errors, gives the default name, and its
    /// folder is where relative paths in the text start; it need not exist. Never panics.
    ///
    /// # Errors
    /// As for [`Workload::from_toml_file`].
    pub fn from_toml_str(text: &str, path: impl AsRef<Path>) -> Result<Self, Error> {
        toml_read::read(text, path.as_ref())
    }
}

fn unknown(name: &str) -> UnknownWorkload {
    UnknownWorkload {
        name: name.to_owned(),
        nearest: nearest(name, NAMES),
    }
}
