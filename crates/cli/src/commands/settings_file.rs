//! A settings file of a command: TOML with the flags' names as keys.

use crate::commands::serve::config::Sourced;
use crate::error::{nearest, usage};
use anyhow::Result;
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// The text of a settings file, to find the line of a key; empty by default.
#[derive(Default)]
pub(crate) struct SettingsFile<C> {
    pub(crate) config: C,
    path: PathBuf,
    text: String,
}

impl<C: Default + DeserializeOwned> SettingsFile<C> {
    /// Reads a file; an error names the file and the line. `keys` are the valid ones.
    pub(crate) fn read(path: &Path, keys: &[&str]) -> Result<Self> {
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
                .and_then(|rest| nearest(rest.split('`').next()?, keys))
                .map_or(String::new(), |key| format!("; did you mean `{key}`?"));
            let place = file.line_of(error.span().map_or(0, |span| span.start));
            usage(&place, format!("{}{hint}", error.message()))
        })?;
        Ok(file)
    }

    /// `FILE:LINE: key`, where the key's value stands.
    pub(crate) fn place<T>(&self, key: &str, set: &Spanned<T>) -> String {
        format!("{}: {key}", self.line_of(set.span().start))
    }

    /// Flag over file over default.
    pub(crate) fn given<T: Clone>(
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
    pub(crate) fn given_if_set<T: Clone>(
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
