//! The settings file of `headway rack`.

use crate::commands::serve::config::Sourced;
use crate::error::{nearest, usage};
use anyhow::Result;
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// What a file says; the keys are the flags' names.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RackConfig {
    pub(super) listen: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) server: Vec<Spanned<String>>,
    pub(super) policy: Option<Spanned<String>>,
    pub(super) workload: Option<Spanned<String>>,
    pub(super) types: Option<Spanned<u64>>,
    pub(super) silence: Option<Spanned<String>>,
    pub(super) agent_key: Option<Spanned<PathBuf>>,
    pub(super) agents: Option<Spanned<String>>,
    pub(super) metrics: Option<Spanned<String>>,
    pub(super) ctl: Option<Spanned<PathBuf>>,
    pub(super) no_ctl: Option<Spanned<bool>>,
    pub(super) xdp: Option<Spanned<String>>,
    pub(super) seed: Option<Spanned<u64>>,
}

const KEYS: &[&str] = &[
    "listen",
    "server",
    "policy",
    "workload",
    "types",
    "silence",
    "agent-key",
    "agents",
    "metrics",
    "ctl",
    "no-ctl",
    "xdp",
    "seed",
];

/// A file as it was read, to tell where something stands; the default is an empty one.
#[derive(Default)]
pub(super) struct RackFile {
    pub(super) config: RackConfig,
    path: PathBuf,
    text: String,
}

impl RackFile {
    /// Reads a file; an error names the file and the line.
    pub(super) fn read(path: &Path) -> Result<Self> {
        let text = read_text(path, SETTINGS_BYTES_MAX)
            .map_err(|error| usage("--config", format!("{}: {error}", path.display())))?;
        let mut file = Self {
            path: path.into(),
            text,
            ..Self::default()
        };
        file.config = toml::from_str(&file.text).map_err(|error| {
            let unknown = error.message().strip_prefix("unknown field `");
            let hint = unknown
                .and_then(|rest| nearest(rest.split('`').next()?, KEYS))
                .map_or(String::new(), |key| format!("; did you mean `{key}`?"));
            let place = file.line_of(error.span().map_or(0, |span| span.start));
            usage(&place, format!("{}{hint}", error.message()))
        })?;
        Ok(file)
    }

    /// `FILE:LINE: key`, where the key's value stands.
    pub(super) fn place<T>(&self, key: &str, set: &Spanned<T>) -> String {
        format!("{}: {key}", self.line_of(set.span().start))
    }

    /// Flag over file over default.
    pub(super) fn given<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: Option<&Spanned<T>>,
        default: impl FnOnce() -> T,
    ) -> Sourced<T> {
        match (flag, set) {
            (None, Some(set)) => Sourced::new(set.get_ref().clone(), self.place(key, set)),
            (flag, _) => Sourced::new(flag.unwrap_or_else(default), format!("--{key}")),
        }
    }

    /// Flag over file; none where it is in neither.
    pub(super) fn given_if_set<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: Option<&Spanned<T>>,
    ) -> Option<Sourced<T>> {
        let value = flag.clone().or_else(|| Some(set?.get_ref().clone()))?;
        Some(self.given(key, flag, set, || value))
    }

    /// `FILE:LINE` of a byte.
    fn line_of(&self, byte: usize) -> String {
        let before = &self.text[..byte.min(self.text.len())];
        let line = before.matches('\n').count() + 1;
        format!("{}:{line}", self.path.display())
    }
}
