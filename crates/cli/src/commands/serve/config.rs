//! The settings file of `headway serve`.

use crate::commands::apps::{App, KvFlags};
use crate::commands::bench::{IdleFlag, LayoutFlag};
use crate::error::{Usage, nearest, usage};
use anyhow::Result;
use serde::Deserialize;
use std::path::Path;

/// The keys are the flags' names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub(crate) struct Config {
    pub(crate) listen: Option<String>,
    pub(crate) app: Option<App>,
    pub(crate) policy: Option<String>,
    pub(crate) workers: Option<usize>,
    pub(crate) workload: Option<String>,
    pub(crate) classifier: Option<String>,
    pub(crate) queue_limit: Option<u64>,
    pub(crate) layout: Option<LayoutFlag>,
    pub(crate) idle: Option<IdleFlag>,
    pub(crate) pin: Option<String>,
    pub(crate) drain: Option<String>,
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
    "kv",
    "keys",
    "data",
    "scan_entries",
];

impl Config {
    /// Reads a file; an error names the file and the line.
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let place = path.display();
        let text = std::fs::read_to_string(path)
            .map_err(|error| usage("--config", format!("{place}: {error}")))?;
        toml::from_str(&text).map_err(|error| {
            let before = error
                .span()
                .map_or("", |span| &text[..span.start.min(text.len())]);
            let line = before.matches('\n').count() + 1;
            let hint = unknown_key(error.message())
                .and_then(|key| nearest(key, KEYS))
                .map_or(String::new(), |key| format!("; did you mean `{key}`?"));
            Usage(format!("{place}:{line}: {}{hint}", error.message())).into()
        })
    }
}

/// The key in "unknown field `polcy`, expected …".
fn unknown_key(message: &str) -> Option<&str> {
    message.strip_prefix("unknown field `")?.split('`').next()
}
