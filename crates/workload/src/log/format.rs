//! The formats of logs, line by line.

use std::borrow::Cow;

use headway_words::nearest;

use crate::error::suggestion;

/// The format of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// The CSV of a [`Trace`](crate::Trace).
    Csv,
    /// Twitter's cache traces (Yang, Yue & Rashmi, OSDI 2020).
    TwitterCache,
    /// Redis' `MONITOR`.
    RedisMonitor,
}

/// The content of a line of a cache's log.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LogLine<'a> {
    /// Seconds, as written.
    pub(crate) time: &'a str,
    pub(crate) class: Cow<'a, str>,
    /// Size of the value, or of the command's arguments.
    pub(crate) bytes: u64,
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
    pub(crate) fn example(self) -> (&'static str, &'static str) {
        match self {
            Self::Csv => ("a trace", "2.5us,SCAN,635us"),
            Self::TwitterCache => ("Twitter's cache traces", "0,q:1:8WTf,17,213,4,get,0"),
            Self::RedisMonitor => (
                "Redis' MONITOR",
                "1339518083.107412 [0 127.0.0.1:60866] \"get\" \"x\"",
            ),
        }
    }

    pub(crate) fn line(self, line: &str) -> Option<LogLine<'_>> {
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
        class: class.into(),
        bytes,
    })
}

/// Commands of scripts have `lua` in place of the client's address.
fn redis_monitor(line: &str) -> Option<LogLine<'_>> {
    let line = line.strip_prefix('+').unwrap_or(line);
    let (time, rest) = line.split_once(' ')?;
    let (_client, command) = match rest.strip_prefix('[') {
        Some(rest) => rest.split_once("] \"")?,
        None => rest.strip_prefix("(db ")?.split_once(") \"")?,
    };
    let (class, arguments) = command.split_once('"')?;
    // Clients write the same command as they like.
    let class: Cow<'_, str> = if class.bytes().any(|byte| byte.is_ascii_uppercase()) {
        class.to_ascii_lowercase().into()
    } else {
        class.into()
    };
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
pub(crate) fn is_skipped(line: &str) -> bool {
    let line = line.trim();
    line.is_empty() || line.starts_with('#') || matches!(line, "OK" | "+OK")
}
