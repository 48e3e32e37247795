//! The settings file of `headway serve`.

use crate::commands::apps::{App, KvFlags};
use crate::commands::bench::{IdleFlag, LayoutFlag};
use crate::error::{nearest, usage};
use anyhow::Result;
use serde::Deserialize;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The keys are the flags' names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct Config {
    pub(crate) listen: Option<Spanned<String>>,
    pub(crate) app: Option<App>,
    pub(crate) policy: Option<Spanned<String>>,
    pub(crate) workers: Option<Spanned<usize>>,
    pub(crate) workload: Option<Spanned<String>>,
    pub(crate) classifier: Option<Spanned<String>>,
    pub(crate) queue_limit: Option<Spanned<u64>>,
    pub(crate) layout: Option<LayoutFlag>,
    pub(crate) idle: Option<IdleFlag>,
    pub(crate) pin: Option<Spanned<String>>,
    pub(crate) drain: Option<Spanned<String>>,
    pub(crate) seed: Option<u64>,
    pub(crate) kv: KvFlags,
}

const KEYS: &[&str] = &[
    "listen",
    "app",
    "policy",
    "workers",
    "workload",
    "classifier",
    "queue-limit",
    "layout",
    "idle",
    "pin",
    "drain",
    "seed",
    "kv",
    "keys",
    "data",
    "scan_entries",
];

/// The file as it was read, to tell where something stands; an empty one where there is none.
#[derive(Default)]
pub(crate) struct File {
    pub(crate) config: Config,
    path: PathBuf,
    text: String,
}

impl File {
    /// Reads a file; an error names the file and the line.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage("--config", format!("{}: {error}", path.display())))?;
        let mut file = Self {
            path: path.into(),
            text,
            ..Self::default()
        };
        file.config = toml::from_str(&file.text).map_err(|error| file.refused(&error))?;
        Ok(file)
    }

    fn refused(&self, error: &toml::de::Error) -> anyhow::Error {
        let place = self.place(error.span().map_or(0, |span| span.start));
        let hint = unknown_key(error.message())
            .and_then(|key| nearest(key, KEYS))
            .map_or(String::new(), |key| format!("; did you mean `{key}`?"));
        usage(&place, format!("{}{hint}", error.message()))
    }

    /// `FILE:LINE` of a byte.
    fn place(&self, byte: usize) -> String {
        let before = &self.text[..byte.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }

    /// Flag over file over default.
    pub(crate) fn given<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: &Option<Spanned<T>>,
        default: impl FnOnce() -> T,
    ) -> Given<T> {
        match (flag, set) {
            (None, Some(set)) => Given {
                value: set.get_ref().clone(),
                place: format!("{}: {key}", self.place(set.span().start)),
            },
            (flag, _) => Given {
                value: flag.unwrap_or_else(default),
                place: format!("--{key}"),
            },
        }
    }
}

/// A value, and the place where it can be changed: the flag, or the key in a line of the file.
pub(crate) struct Given<T> {
    pub(crate) value: T,
    place: String,
}

impl<T> Given<T> {
    /// What it means; an error names the place.
    pub(crate) fn parse<U, E: Display>(
        self,
        parse: impl FnOnce(&T) -> Result<U, E>,
    ) -> Result<Given<U>> {
        match parse(&self.value) {
            Ok(value) => Ok(Given {
                value,
                place: self.place,
            }),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// An error that names the place.
    pub(crate) fn refused(&self, why: impl Display) -> anyhow::Error {
        usage(&self.place, why)
    }
}

/// The key in "unknown field `polcy`, expected …".
fn unknown_key(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}
