//! A table of a TOML file with its place, so that every error names a line.

use std::path::Path;

use headway_words::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::duration;
use crate::error::{Error, Located, Problem};

/// A file being read.
#[derive(Clone, Copy)]
pub(crate) struct Document<'a> {
    pub(crate) path: &'a Path,
    pub(crate) text: &'a str,
}

impl Document<'_> {
    pub(crate) fn error(self, offset: usize, key: String, problem: Problem) -> Error {
        let before = self
            .text
            .as_bytes()
            .get(..offset)
            .unwrap_or(self.text.as_bytes());
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        Box::new(Located {
            file: self.path.display().to_string(),
            line,
            key,
            problem,
        })
        .into()
    }
}

/// A table, where it starts, and the dotted path that leads to it.
#[derive(Clone)]
pub(crate) struct TomlSection<'a> {
    document: Document<'a>,
    table: &'a DeTable<'a>,
    offset: usize,
    path: String,
}

type TomlValue<'a> = Spanned<DeValue<'a>>;

impl<'a> TomlSection<'a> {
    pub(crate) fn root(document: Document<'a>, table: &'a DeTable<'a>) -> Self {
        Self {
            document,
            table,
            offset: 0,
            path: String::new(),
        }
    }

    pub(crate) fn document(&self) -> Document<'a> {
        self.document
    }

    /// An error at a key of this table, or at the table itself when the key is absent. A dotted key
    /// is looked up by its first part.
    pub(crate) fn error(&self, key: &str, problem: Problem) -> Error {
        let first = key.split('.').next().unwrap_or(key);
        let place = self.table.iter().find(|(name, _)| name.get_ref() == first);
        let offset = place.map_or(self.offset, |(name, _)| name.span().start);
        self.document.error(offset, self.dotted(key), problem)
    }

    /// Refuses keys that are not `known`, the first in the file first.
    pub(crate) fn only(&self, known: &[&str]) -> Result<(), Error> {
        let unknown = self
            .table
            .keys()
            .filter(|key| !known.contains(&key.get_ref().as_ref()));
        let Some(key) = unknown.min_by_key(|key| key.span().start) else {
            return Ok(());
        };
        let nearest = nearest(key.get_ref(), known).map(str::to_owned);
        let problem = Problem::UnknownKey {
            nearest,
            known: known.join(", "),
        };
        Err(self
            .document
            .error(key.span().start, self.dotted(key.get_ref()), problem))
    }

    pub(crate) fn has(&self, key: &str) -> bool {
        self.table.contains_key(key)
    }

    pub(crate) fn missing(&self, key: &str, remedy: &'static str) -> Error {
        self.error(key, Problem::Missing { remedy })
    }

    pub(crate) fn string(&self, key: &str) -> Result<Option<&'a str>, Error> {
        self.get(key, "a text in quotes", |value| value.as_str())
    }

    pub(crate) fn boolean(&self, key: &str) -> Result<Option<bool>, Error> {
        self.get(key, "true or false", |value| value.as_bool())
    }

    pub(crate) fn number(&self, key: &str) -> Result<Option<f64>, Error> {
        self.get(key, "a number", number)
    }

    pub(crate) fn numbers(&self, key: &str) -> Result<Option<Vec<f64>>, Error> {
        self.get(key, "a list of numbers", |value| {
            value
                .as_array()?
                .iter()
                .map(|item| number(item.get_ref()))
                .collect()
        })
    }

    pub(crate) fn duration(&self, key: &str) -> Result<Option<u64>, Error> {
        let text = self.get(key, "a duration in quotes, such as \"5us\"", |value| {
            value.as_str()
        })?;
        text.map(|text| self.parse_duration(key, text)).transpose()
    }

    pub(crate) fn durations(&self, key: &str) -> Result<Option<Vec<u64>>, Error> {
        let texts = self.get(
            key,
            "a list of durations in quotes, such as [\"5us\"]",
            |value| {
                value
                    .as_array()?
                    .iter()
                    .map(|item| item.get_ref().as_str())
                    .collect::<Option<Vec<_>>>()
            },
        )?;
        texts
            .map(|texts: Vec<&str>| texts.iter().map(|t| self.parse_duration(key, t)).collect())
            .transpose()
    }

    /// A table within this one.
    pub(crate) fn section(&self, key: &str, expected: &'static str) -> Result<Option<Self>, Error> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        self.child(key, value, expected).map(Some)
    }

    /// A list of tables within this one; absent is empty.
    pub(crate) fn sections(&self, key: &str, expected: &'static str) -> Result<Vec<Self>, Error> {
        let list = self.get(key, expected, |value| value.as_array())?;
        list.into_iter()
            .flatten()
            .map(|value| self.child(key, value, expected))
            .collect()
    }

    fn child(
        &self,
        key: &str,
        value: &'a TomlValue<'a>,
        expected: &'static str,
    ) -> Result<Self, Error> {
        let Some(table) = value.get_ref().as_table() else {
            return Err(self.wrong_type(key, expected, value));
        };
        let offset = value.span().start;
        Ok(Self {
            document: self.document,
            table,
            offset,
            path: self.dotted(key),
        })
    }

    fn value(&self, key: &str) -> Option<&'a TomlValue<'a>> {
        self.table.get(key)
    }

    fn get<T>(
        &self,
        key: &str,
        expected: &'static str,
        read: impl Fn(&'a DeValue<'a>) -> Option<T>,
    ) -> Result<Option<T>, Error> {
        let Some(value) = self.value(key) else {
            return Ok(None);
        };
        match read(value.get_ref()) {
            Some(read) => Ok(Some(read)),
            None => Err(self.wrong_type(key, expected, value)),
        }
    }

    fn wrong_type(&self, key: &str, expected: &'static str, value: &TomlValue<'_>) -> Error {
        let found = self.document.text.get(value.span()).unwrap_or_default();
        let found = match value.get_ref() {
            DeValue::Table(_) => "a table".to_owned(),
            DeValue::Array(_) => "a list".to_owned(),
            _ => format!("`{}`", found.lines().next().unwrap_or_default()),
        };
        self.document.error(
            value.span().start,
            self.dotted(key),
            Problem::Type { expected, found },
        )
    }

    fn parse_duration(&self, key: &str, text: &str) -> Result<u64, Error> {
        duration::parse(text).map_err(|error| self.error(key, error.into()))
    }

    fn dotted(&self, key: &str) -> String {
        if self.path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.path)
        }
    }
}

fn number(value: &DeValue<'_>) -> Option<f64> {
    match value {
        DeValue::Float(float) => float.as_str().parse().ok(),
        DeValue::Integer(integer) => i64::from_str_radix(integer.as_str(), integer.radix())
            .ok()
            .map(|whole| whole as f64),
        _ => None,
    }
}
