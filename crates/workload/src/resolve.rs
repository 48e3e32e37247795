//! Workloads by name or from a file.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Error, UnknownWorkload, unreadable};
use crate::file::{SETTINGS_BYTES_MAX, file_stem, read_regular};
use crate::log::{Format, has_trace_header};
use crate::names::NAMES;
use crate::toml_read;
use crate::trace::Trace;
use crate::trace_options::TraceOptions;
use crate::workload::Workload;
use crate::ycsb;
use headway_words::nearest;

impl Workload {
    /// The workload called `name_or_path`: a [`Workload::named`] one, else a trace or log (`.csv`, or what begins like one), else a
    /// workload file.
    ///
    /// # Errors
    /// [`Error::Unknown`], with the nearest name, when it is neither a name nor an existing file
    /// and does not look like a path; otherwise the errors of reading the file.
    pub fn resolve(name_or_path: &str) -> Result<Self, Error> {
        Self::resolve_with(name_or_path, &TraceOptions::default())
    }

    /// As [`Workload::resolve`]; a trace or log is read as the options say.
    ///
    /// # Errors
    /// As [`Workload::resolve`].
    pub fn resolve_with(name_or_path: &str, options: &TraceOptions) -> Result<Self, Error> {
        if let Some(workload) = Self::named(name_or_path) {
            return Ok(workload);
        }
        let path = Path::new(name_or_path);
        let extension = path.extension().and_then(|extension| extension.to_str());
        match extension {
            Some("csv") => Ok(Trace::read_with(path, options)?.into_workload(file_stem(path))),
            Some("toml") => Self::from_toml_file(path),
            _ if path.is_file() && (options.format.is_some() || is_log(path)?) => {
                Ok(Trace::read_with(path, options)?.into_workload(file_stem(path)))
            }
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
        let path = path.as_ref();
        toml_read::read(text, path).map_err(|error| ycsb::refusal(text, path).unwrap_or(error))
    }
}

/// Whether a file begins like a trace or a log of a cache, and not like a workload file.
fn is_log(path: &Path) -> Result<bool, Error> {
    const HEAD_BYTES: u64 = 64 << 10;
    let mut head = Vec::new();
    let read = File::open(path).and_then(|file| file.take(HEAD_BYTES).read_to_end(&mut head));
    read.map_err(|source| unreadable("workload", path.to_owned(), source))?;
    let head = String::from_utf8_lossy(&head);
    Ok(Format::guess(&head) != Format::Csv || has_trace_header(&head))
}

fn unknown(name: &str) -> UnknownWorkload {
    UnknownWorkload {
        name: name.to_owned(),
        nearest: nearest(name, NAMES),
    }
}
