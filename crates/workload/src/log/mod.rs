//! Reads the logs of caches as traces.
//!
//! | format | a line |
//! |---|---|
//! | [`Format::Csv`] | a [`Trace`]'s own: `time,class,service` with a header row |
//! | [`Format::TwitterCache`] | Twitter's cache traces: `timestamp,key,key size,value size,client,operation,TTL`, the time in seconds |
//! | [`Format::RedisMonitor`] | what `redis-cli MONITOR` prints: `1339518083.107412 [0 127.0.0.1:60866] "get" "x"`; of old servers with `(db 0)` for the brackets, of the protocol with a `+` before it. Commands are the same in every case |
//!
//! Logs of caches record the time and name of each operation, without its service time: a
//! [`ServiceModel`] supplies that. Times count from the first line.

pub(crate) mod format;
pub(crate) mod model;

pub use format::Format;
pub use model::{ModelError, ServiceModel};

use std::path::Path;

use crate::Trace;
use crate::csv_rows::Checked;
use crate::duration;
use crate::error::{Error, Problem, unreadable};
use crate::file::{TRACE_BYTES_MAX, read_regular};
use crate::section::Document;
use crate::trace_options::TraceOptions;
use format::is_skipped;

/// Whether the first row of a text names the columns of a trace.
pub(crate) fn has_trace_header(text: &str) -> bool {
    let rows = text.lines().map(|line| line.trim().trim_start_matches('#'));
    let first = rows.into_iter().find(|row| !row.is_empty()).unwrap_or("");
    let names = || first.split(',').map(str::trim);
    ["time", "class"]
        .iter()
        .all(|column| names().any(|name| name == *column))
}

impl Trace {
    /// Reads a trace or log as the options say.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read, [`Error::Located`] when a line is wrong, or has a
    /// class that the model lacks.
    pub fn read_with(path: &Path, options: &TraceOptions) -> Result<Self, Error> {
        let text = read_regular(path, TRACE_BYTES_MAX)
            .map_err(|source| unreadable("trace", path.to_owned(), source))?;
        Self::from_str_with(&text, path, options)
    }

    /// Reads a trace or log from a text; `path` is named in errors.
    ///
    /// # Errors
    /// As [`Trace::read_with`].
    pub fn from_str_with(text: &str, path: &Path, options: &TraceOptions) -> Result<Self, Error> {
        let format = options.format.unwrap_or_else(|| Format::guess(text));
        if format == Format::Csv {
            return Self::from_csv_with(text, path, options);
        }
        let document = Document { path, text };
        let mut trace = Self::empty(path.to_owned());
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            if !is_skipped(line) {
                add(&mut trace, line.trim_end(), format, &options.services)
                    .map_err(|(key, problem)| document.error(offset, key.into(), problem))?;
            }
            offset += line.len();
        }
        trace.filled(document)
    }
}

fn add(trace: &mut Trace, text: &str, format: Format, model: &ServiceModel) -> Checked<()> {
    let (name, example) = format.example();
    let line = format.line(text).ok_or_else(|| {
        let wrong = Problem::NotOfFormat {
            format: name,
            example,
        };
        ("", wrong)
    })?;
    let seconds = format!("{}s", line.time);
    let at_ns = duration::parse(&seconds).map_err(|error| ("time", error.into()))?;
    let service_ns = model
        .of(&line.class, line.bytes)
        .map_err(|problem| ("class", problem))?;
    trace.add(line.time, at_ns, &line.class, service_ns)
}

#[cfg(test)]
mod tests;
