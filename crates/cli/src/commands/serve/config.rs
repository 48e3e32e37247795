//! The settings of `headway serve`: flags over file over defaults.

use crate::commands::apps::{BuiltInApp, KvFlags};
use crate::error::usage;
use anyhow::Result;
use headway::config;
use std::fmt::Display;
use std::path::Path;
use toml::Spanned;

/// The file, read as `serve` does: with its service.
pub(crate) type File = config::File<BuiltInApp, KvFlags>;

/// Reads a file; an error names the file and the line.
pub(crate) fn read(path: &Path) -> Result<File> {
    File::read(path).map_err(|error| {
        if error.place == path.display().to_string() {
            return usage("--config", error);
        }
        usage(&error.place, error.message)
    })
}

/// What flags add to a file.
pub(crate) trait Flags {
    /// Flag over file over default.
    fn given<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: &Option<Spanned<T>>,
        default: impl FnOnce() -> T,
    ) -> Sourced<T>;

    /// Flag over file; none where it is in neither.
    fn given_if_set<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: &Option<Spanned<T>>,
    ) -> Option<Sourced<T>>;
}

impl Flags for File {
    fn given<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: &Option<Spanned<T>>,
        default: impl FnOnce() -> T,
    ) -> Sourced<T> {
        match (flag, set) {
            (None, Some(set)) => Sourced {
                value: set.get_ref().clone(),
                place: self.place(key, set),
            },
            (flag, _) => Sourced {
                value: flag.unwrap_or_else(default),
                place: format!("--{key}"),
            },
        }
    }

    fn given_if_set<T: Clone>(
        &self,
        key: &str,
        flag: Option<T>,
        set: &Option<Spanned<T>>,
    ) -> Option<Sourced<T>> {
        let value = flag
            .clone()
            .or(set.as_ref().map(|set| set.get_ref().clone()))?;
        Some(self.given(key, flag, set, || value))
    }
}

/// A value, and the place where it can be changed: the flag, or the key in a line of the file.
pub(crate) struct Sourced<T> {
    pub(crate) value: T,
    place: String,
}

impl<T> Sourced<T> {
    /// A value with its place.
    pub(crate) fn new(value: T, place: String) -> Self {
        Self { value, place }
    }

    /// Parses the value; an error names its place.
    pub(crate) fn parse<U, E: Display>(
        self,
        parse: impl FnOnce(&T) -> Result<U, E>,
    ) -> Result<Sourced<U>> {
        match parse(&self.value) {
            Ok(value) => Ok(Sourced {
                value,
                place: self.place,
            }),
            Err(error) => Err(self.refused(error)),
        }
    }

    /// An error that names the value's place.
    pub(crate) fn refused(&self, why: impl Display) -> anyhow::Error {
        usage(&self.place, why)
    }
}
