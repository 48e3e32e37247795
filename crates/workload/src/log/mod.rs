//! Reads the logs of caches as traces.
//!
//! | format | a line |
//! |---|---|
//! | [`Format::Csv`] | a [`Trace`]'s own: `time,class,service` with a header row |
//! | [`Format::TwitterCache`] | Twitter's cache traces: `timestamp,key,key size,value size,client,operation,TTL`, the time in seconds |
//! | [`Format::RedisMonitor`] | what `redis-cli MONITOR` prints: `1339518083.107412 [0 127.0.0.1:60866] "get" "x"` |
//!
//! Logs of caches record the time and name of each operation, without its service time: a
//! [`ServiceModel`] supplies that. Times count from the first line.

mod model;

pub use model::{ModelError, ServiceModel};

use std::path::Path;

use headway_words::nearest;

use crate::Trace;
use crate::csv_rows::Checked;
use crate::duration;
use crate::error::{Error, Problem, suggestion, unreadable};
use crate::file::{TRACE_BYTES_MAX, read_regular};
use crate::section::Document;

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The CSV of a [`Trace`].
    Csv,
    /// Twitter's cache traces (Yang, Yue & Rashmi, OSDI 2020).
    TwitterCache,
    /// Redis' `MONITOR`.
    RedisMonitor,
}

/// The content of a line of a cache's log.
#[derive(Debug, Clone, Copy, PartialEq)]
struct LogLine<'a> {
    /// Seconds, as written.
    time: &'a str,
    class: &'a str,
    /// Size of the value, or of the command's arguments.
    bytes: u64,
}

impl Format {
    /// The names of the formats.
    pub const NAMES: [&'static str; 3] = ["csv", "twitter-cache", "redis-monitor"];

    /// The format of this name.
    ///
    /// # Errors
    /// An error message with the nearest name.
    pub fn from_name(name: &str) -> Result<Self, String> {
        const ALL: [Format; 3] = [Format::Csv, Format::TwitterCache, Format::RedisMonitor];
        let place = Self::NAMES.iter().position(|known| *known == name);
        place.map(|place| ALL[place]).ok_or_else(|| {
            let hint = suggestion(nearest(name, Self::NAMES));
            let known = Self::NAMES.join(", ");
            format!("no log format is called `{name}`{hint}; there are: {known}")
        })
    }

    /// The format of a log's first line; CSV when no other format matches.
    #[must_use]
    pub fn guess(text: &str) -> Self {
        let first = text.lines().find(|line| !is_skipped(line)).unwrap_or("");
        let is = |format: Self| format.line(first).is_some();
        if is(Self::RedisMonitor) {
            Self::RedisMonitor
        } else if is(Self::TwitterCache) {
            Self::TwitterCache
        } else {
            Self::Csv
        }
    }

    /// Name and example of a line, for errors.
    fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::Csv => ("a trace", "2.5us,SCAN,635us"),
            Self::TwitterCache => ("Twitter's cache traces", "0,q:1:8WTf,17,213,4,get,0"),
            Self::RedisMonitor => (
                "Redis' MONITOR",
                "1339518083.107412 [0 127.0.0.1:60866] \"get\" \"x\"",
            ),
        }
    }

    fn line(self, line: &str) -> Option<LogLine<'_>> {
        match self {
            Self::Csv => None,
            Self::TwitterCache => twitter_cache(line),
            Self::RedisMonitor => redis_monitor(line),
        }
    }
}

/// Keys are anonymised but may hold commas: the fields after them are counted from the end.
fn twitter_cache(line: &str) -> Option<LogLine<'_>> {
    let (time, rest) = line.split_once(',')?;
    let mut fields = rest.rsplitn(6, ',').map(str::trim);
    let mut number = || fields.next()?.parse::<u64>().ok();
    number()?; // the TTL
    let class = fields.next().filter(|class| !class.is_empty())?;
    let mut number = || fields.next()?.parse::<u64>().ok();
    let (_client, bytes, _key_size) = (number()?, number()?, number()?);
    fields.next()?; // the key
    is_time(time).then_some(LogLine {
        time: time.trim(),
        class,
        bytes,
    })
}

/// Commands of scripts have `lua` in place of the client's address.
fn redis_monitor(line: &str) -> Option<LogLine<'_>> {
    let (time, rest) = line.split_once(' ')?;
    let (_client, command) = rest.strip_prefix('[')?.split_once("] \"")?;
    let (class, arguments) = command.split_once('"')?;
    (is_time(time) && !class.is_empty()).then_some(LogLine {
        time,
        class,
        bytes: arguments.trim().len() as u64,
    })
}

fn is_time(text: &str) -> bool {
    text.trim()
        .bytes()
        .all(|byte| byte.is_ascii_digit() || byte == b'.')
}

/// Blank lines, comments, and Redis' greeting.
fn is_skipped(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || line == "OK"
}

impl Trace {
    /// Reads a log. Without `format`, the first line determines it. `model` gives the service times of a
    /// cache's operations.
    ///
    /// # Errors
    /// [`Error::Read`] when the file cannot be read, [`Error::Located`] when a line is wrong, or has a
    /// class that the model lacks.
    pub fn read_log(
        path: &Path,
        format: Option<Format>,
        model: &ServiceModel,
    ) -> Result<Self, Error> {
        let text = read_regular(path, TRACE_BYTES_MAX)
            .map_err(|source| unreadable("trace", path.to_owned(), source))?;
        let format = format.unwrap_or_else(|| Format::guess(&text));
        Self::from_log_str(&text, path, format, model)
    }

    /// Reads a log from a text; `path` is named in errors.
    ///
    /// # Errors
    /// As [`Trace::read_log`].
    pub fn from_log_str(
        text: &str,
        path: &Path,
        format: Format,
        model: &ServiceModel,
    ) -> Result<Self, Error> {
        if format == Format::Csv {
            return Self::from_csv_str(text, path);
        }
        let document = Document { path, text };
        let mut trace = Self::empty(path.to_owned());
        let mut offset = 0;
        for line in text.split_inclusive('\n') {
            if !is_skipped(line) {
                add(&mut trace, line.trim_end(), format, model)
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
    let service_ns = model.service_ns(line.class, line.bytes);
    let service_ns = service_ns.ok_or_else(|| {
        let class = line.class.to_owned();
        ("class", Problem::Unpriced { class })
    })?;
    trace.add(line.time, at_ns, line.class, service_ns)
}

#[cfg(test)]
mod tests;
