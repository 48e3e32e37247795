//! Parsing a classifier's spec string: `name:key=value,key=value`.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::RangeInclusive;

use headway_words::remedy;
use thiserror::Error;

use super::table::{MAX_WORD_BYTES, NumberTable, WordTooLong};

/// An error in a classifier's spec string, with its position.
#[derive(Clone, PartialEq, Eq, Error)]
#[error("classifier `{spec}`, column {column}: {problem}")]
pub struct ClassifierSpecError {
    /// The spec as given.
    pub spec: String,
    /// Start of the problem, in characters, from 1; one past the end for a missing part.
    pub column: usize,
    /// The problem.
    pub problem: SpecProblem,
}

headway_words::debug_is_display!(ClassifierSpecError);

/// A problem of a spec.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum SpecProblem {
    /// The first word names no classifier.
    #[error("no classifier is named `{found}`; {remedy}")]
    UnknownClassifier {
        /// The name given.
        found: String,
        /// The valid name most like it, or all of them.
        remedy: String,
    },
    /// The classifier has no such option or command.
    #[error("`{found}` is not known here; {remedy}")]
    UnknownKey {
        /// The key given.
        found: String,
        /// The valid key most like it, or all of them.
        remedy: String,
    },
    /// An option's value is not one of its choices.
    #[error("`{option}` cannot be `{found}`; {remedy}")]
    UnknownValue {
        /// The option.
        option: String,
        /// The value given.
        found: String,
        /// The valid value most like it, or all of them.
        remedy: String,
    },
    /// An entry is not of the form `key=value`.
    #[error("expected key=value, found `{found}`")]
    NotAPair {
        /// The entry.
        found: String,
    },
    /// A number is not one, or out of range.
    #[error("expected a number from {min} to {max}, found `{found}`")]
    BadNumber {
        /// The text given.
        found: String,
        /// Least value allowed.
        min: u64,
        /// Greatest value allowed.
        max: u64,
    },
    /// A key is given twice.
    #[error("`{key}` is given twice")]
    Repeated {
        /// The key.
        key: String,
    },
    /// A part without a default is missing.
    #[error("`{example}` or the like is missing")]
    Missing {
        /// The part to add.
        example: &'static str,
    },
    /// A command word is longer than any table holds.
    #[error("command word `{word}` is longer than {MAX_WORD_BYTES} bytes")]
    WordTooLong {
        /// The word.
        word: String,
    },
}

headway_words::debug_is_display!(SpecProblem);

/// A spec string, split into its parts. A classifier takes the parts that it knows.
pub(super) struct ClassifierSpec<'a> {
    text: &'a str,
    name: &'a str,
    entries: Vec<SpecEntry<'a>>,
}

/// Command words and their classes.
pub(super) type WordPairs<'a> = Vec<(&'a str, u16)>;

/// One `key=value`, by reference into the spec string so that errors can point at it.
#[derive(Clone, Copy)]
pub(super) struct SpecEntry<'a> {
    text: &'a str,
    key: &'a str,
    value: &'a str,
}

impl<'a> ClassifierSpec<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, ClassifierSpecError> {
        let (name, list) = text.split_once(':').unwrap_or((text, ""));
        let mut keys = BTreeSet::new();
        let mut entries = Vec::new();
        for pair in list.split(',').filter(|_| !list.is_empty()) {
            let entry = SpecEntry::parse(text, pair)?;
            if !keys.insert(entry.key) {
                return Err(entry.repeated());
            }
            entries.push(entry);
        }
        Ok(Self {
            text,
            name,
            entries,
        })
    }

    /// The classifier's name, one of `known`.
    pub(super) fn name(&self, known: &[&'static str]) -> Result<&'static str, ClassifierSpecError> {
        find(known, self.name).ok_or_else(|| {
            let problem = SpecProblem::UnknownClassifier {
                found: self.name.to_owned(),
                remedy: remedy(self.name, known),
            };
            error_at(self.text, self.name, problem)
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes an option out of the entries, which then hold only the table.
    pub(super) fn take(&mut self, key: &str) -> Option<SpecEntry<'a>> {
        let at = self.entries.iter().position(|entry| entry.key == key)?;
        Some(self.entries.remove(at))
    }

    /// Takes an option that has no default.
    pub(super) fn required(
        &mut self,
        key: &str,
        example: &'static str,
    ) -> Result<SpecEntry<'a>, ClassifierSpecError> {
        self.take(key).ok_or_else(|| self.missing(example))
    }

    pub(super) fn refuse_empty(&self, example: &'static str) -> Result<(), ClassifierSpecError> {
        if self.is_empty() {
            Err(self.missing(example))
        } else {
            Ok(())
        }
    }

    /// The entries as number → class pairs, or identity if there are none. `options` are
    /// the keys to suggest where a key is no number.
    pub(super) fn number_table(
        &self,
        options: &[&'static str],
        range: RangeInclusive<u64>,
    ) -> Result<NumberTable, ClassifierSpecError> {
        if self.is_empty() {
            return Ok(NumberTable::identity());
        }
        Ok(self.numbers(options, range)?.into_iter().collect())
    }

    /// The entries as number → class pairs.
    pub(super) fn numbers(
        &self,
        options: &[&'static str],
        range: RangeInclusive<u64>,
    ) -> Result<BTreeMap<u64, u16>, ClassifierSpecError> {
        collect_numbers(&self.entries, |entry| {
            entry.key_number(options, range.clone())
        })
    }

    /// The entries as word → class pairs, at least one.
    pub(super) fn nonempty_words(
        &self,
        example: &'static str,
    ) -> Result<WordPairs<'a>, ClassifierSpecError> {
        self.refuse_empty(example)?;
        let mut seen = BTreeSet::new();
        for entry in &self.entries {
            if !seen.insert(entry.key.to_ascii_uppercase()) {
                return Err(entry.repeated());
            }
        }
        self.entries.iter().map(SpecEntry::word_and_class).collect()
    }

    /// The entries as word → class pairs, each word one of `known`.
    pub(super) fn known_words(
        &self,
        known: &[&'static str],
    ) -> Result<WordPairs<'a>, ClassifierSpecError> {
        for entry in &self.entries {
            if find(known, entry.key).is_none() {
                return Err(entry.unknown_key(known));
            }
        }
        self.entries.iter().map(SpecEntry::word_and_class).collect()
    }

    /// The entries whose key is a number as one table, the others as pairs. Without any the
    /// numbers are identity.
    pub(super) fn numbers_and_words(
        &self,
        range: RangeInclusive<u64>,
    ) -> Result<(NumberTable, WordPairs<'a>), ClassifierSpecError> {
        let (numeric, words): (Vec<_>, Vec<_>) = self
            .entries
            .iter()
            .partition(|entry| entry.key.starts_with(|c: char| c.is_ascii_digit()));
        let words = words
            .iter()
            .map(SpecEntry::word_and_class)
            .collect::<Result<_, _>>()?;
        if self.is_empty() {
            return Ok((NumberTable::identity(), words));
        }
        let pairs = collect_numbers(&numeric, |entry| entry.key_number(&[], range.clone()))?;
        Ok((pairs.into_iter().collect(), words))
    }

    pub(super) fn too_long(&self, error: WordTooLong) -> ClassifierSpecError {
        let place = self.entries.iter().find(|entry| entry.key == error.word);
        let place = place.map_or(self.text, |entry| entry.key);
        error_at(
            self.text,
            place,
            SpecProblem::WordTooLong { word: error.word },
        )
    }

    fn missing(&self, example: &'static str) -> ClassifierSpecError {
        let end = &self.text[self.text.len()..];
        error_at(self.text, end, SpecProblem::Missing { example })
    }
}

impl<'a> SpecEntry<'a> {
    fn parse(text: &'a str, pair: &'a str) -> Result<Self, ClassifierSpecError> {
        match pair.split_once('=') {
            Some((key, value)) if !key.is_empty() => Ok(Self { text, key, value }),
            _ => Err(error_at(
                text,
                pair,
                SpecProblem::NotAPair {
                    found: pair.to_owned(),
                },
            )),
        }
    }

    /// The value as a number in `range`.
    pub(super) fn number(&self, range: RangeInclusive<u64>) -> Result<u64, ClassifierSpecError> {
        number_at(self.text, self.value, &range)
    }

    /// The value as a class.
    pub(super) fn class(&self) -> Result<u16, ClassifierSpecError> {
        Ok(self.number(0..=u64::from(u16::MAX))? as u16)
    }

    /// The value as one of `choices`.
    pub(super) fn choice(
        &self,
        choices: &[&'static str],
    ) -> Result<&'static str, ClassifierSpecError> {
        find(choices, self.value).ok_or_else(|| {
            let problem = SpecProblem::UnknownValue {
                option: self.key.to_owned(),
                found: self.value.to_owned(),
                remedy: remedy(self.value, choices),
            };
            error_at(self.text, self.value, problem)
        })
    }

    fn key_number(
        &self,
        options: &[&'static str],
        range: RangeInclusive<u64>,
    ) -> Result<u64, ClassifierSpecError> {
        let misspelt = !self.key.starts_with(|c: char| c.is_ascii_digit());
        if misspelt && !options.is_empty() {
            return Err(self.unknown_key(options));
        }
        number_at(self.text, self.key, &range)
    }

    fn word_and_class(self: &SpecEntry<'a>) -> Result<(&'a str, u16), ClassifierSpecError> {
        Ok((self.key, self.class()?))
    }

    fn unknown_key(&self, known: &[&'static str]) -> ClassifierSpecError {
        let problem = SpecProblem::UnknownKey {
            found: self.key.to_owned(),
            remedy: remedy(self.key, known),
        };
        error_at(self.text, self.key, problem)
    }

    fn repeated(&self) -> ClassifierSpecError {
        error_at(
            self.text,
            self.key,
            SpecProblem::Repeated {
                key: self.key.to_owned(),
            },
        )
    }
}

fn collect_numbers<'a>(
    entries: impl IntoIterator<Item = &'a SpecEntry<'a>>,
    key: impl Fn(&SpecEntry<'a>) -> Result<u64, ClassifierSpecError>,
) -> Result<BTreeMap<u64, u16>, ClassifierSpecError> {
    let mut pairs = BTreeMap::new();
    for entry in entries {
        // `1` and `0x1` are different keys but the same number.
        if pairs.insert(key(entry)?, entry.class()?).is_some() {
            return Err(entry.repeated());
        }
    }
    Ok(pairs)
}

/// A decimal or `0x` number at `place` in `text`.
fn number_at(
    text: &str,
    place: &str,
    range: &RangeInclusive<u64>,
) -> Result<u64, ClassifierSpecError> {
    let parsed = match place.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => place.parse(),
    };
    parsed
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| {
            let (min, max) = (*range.start(), *range.end());
            error_at(
                text,
                place,
                SpecProblem::BadNumber {
                    found: place.to_owned(),
                    min,
                    max,
                },
            )
        })
}

fn find(known: &[&'static str], word: &str) -> Option<&'static str> {
    known.iter().copied().find(|name| *name == word)
}

/// The error at `place`, a part of `text`.
fn error_at(text: &str, place: &str, problem: SpecProblem) -> ClassifierSpecError {
    let offset = place.as_ptr() as usize - text.as_ptr() as usize;
    ClassifierSpecError {
        spec: text.to_owned(),
        column: text[..offset].chars().count() + 1,
        problem,
    }
}

#[cfg(test)]
mod tests {
    use super::super::{AnyClassifier, Classifier};

    fn class(spec: &str, datagram: &[u8]) -> Option<u16> {
        spec.parse::<AnyClassifier>()
            .unwrap_or_else(|e| panic!("{e}"))
            .classify(datagram)
    }

    #[test]
    fn every_form_classifies() {
        let header = [9, 0, 0, 0, 0, 1, 0, 0, 0, 0];
        assert_eq!(class("header", &header), Some(9));
        assert_eq!(class("header:7=0,0x9=1", &header), Some(1));
        assert_eq!(class("header:", &header), Some(9));
        assert_eq!(class("offset:at=4,bytes=2", &header), Some(1));
        assert_eq!(
            class("offset:at=4,bytes=2,endian=little,0x100=5", &header),
            Some(5)
        );
        assert_eq!(class("offset:mask=0x0c,bytes=1,at=0,2=3", &header), Some(3));
        assert_eq!(class("resp:GET=0,scan=1", b"SCAN 0\r\n"), Some(1));
        assert_eq!(class("memcached", b"set k 0 0 1\r\nv\r\n"), Some(1));
        assert_eq!(class("memcached:get=7,frame=none", b"get k\r\n"), Some(7));
        assert_eq!(
            class("memcached:frame=udp", b"\0\0\0\0\0\x01\0\0get k\r\n"),
            Some(0)
        );
        assert_eq!(class("protobuf:field=1", b"\x08\x05"), Some(5));
        assert_eq!(class("protobuf:field=2,absent=4", b"\x08\x05"), Some(4));
        assert_eq!(class("protobuf:field=1,5=0,scan=1", b"\x08\x05"), Some(0));
        assert_eq!(
            class("protobuf:field=1,5=0,scan=1", b"\x0a\x04scan"),
            Some(1)
        );
        assert_eq!(class("protobuf:field=1,skip=2", b"..\x08\x05"), Some(5));
        assert_eq!(class("protobuf-oneof:3=0,4=1", b"\x22\x00"), Some(1));
    }

    #[test]
    fn errors_name_place_and_remedy() {
        for (spec, message) in [
            (
                "heder",
                "column 1: no classifier is named `heder`; did you mean `header`?",
            ),
            ("", "column 1: no classifier is named ``"),
            (
                "header:x=1",
                "column 8: expected a number from 0 to 254, found `x`",
            ),
            (
                "header:255=1",
                "column 8: expected a number from 0 to 254, found `255`",
            ),
            (
                "header:1=65536",
                "column 10: expected a number from 0 to 65535, found `65536`",
            ),
            ("header:1=0,0x1=1", "column 12: `0x1` is given twice"),
            ("resp", "column 5: `GET=0,SCAN=1` or the like is missing"),
            ("resp:GET", "column 6: expected key=value, found `GET`"),
            ("resp:GET=0,", "column 12: expected key=value, found ``"),
            ("resp:=0", "column 6: expected key=value, found `=0`"),
            (
                "resp:GET=",
                "column 10: expected a number from 0 to 65535, found ``",
            ),
            ("resp:GET=0,get=1", "column 12: `get` is given twice"),
            (
                "resp:A=0,ABCDEFGHIJKLMNOPQRSTUVWXYZ=1",
                "column 10: command word `ABC",
            ),
            (
                "memcached:gte=0",
                "column 11: `gte` is not known here; did you mean `get`?",
            ),
            (
                "memcached:frmae=udp",
                "column 11: `frmae` is not known here; did you mean `frame`?",
            ),
            (
                "memcached:frame=tcp",
                "column 17: `frame` cannot be `tcp`; known: udp, none",
            ),
            ("offset:at=4", "column 12: `bytes=2` or the like is missing"),
            ("offset:at=4,bytes=3", "column 19: `bytes` cannot be `3`"),
            (
                "offset:at=4,bytes=1,endain=big",
                "column 21: `endain` is not known here; did you mean `endian`?",
            ),
            (
                "offset:at=4,bytes=1,mask=256",
                "column 26: expected a number from 1 to 255",
            ),
            (
                "protobuf:feild=1",
                "column 17: `field=1` or the like is missing",
            ),
            (
                "protobuf:field=0",
                "column 16: expected a number from 1 to 536870911, found `0`",
            ),
            (
                "protobuf-oneof",
                "column 15: `3=0,4=1` or the like is missing",
            ),
            (
                "résp:GET=x",
                "column 1: no classifier is named `résp`; did you mean `resp`?",
            ),
            (
                "resp:GÉT=x",
                "column 10: expected a number from 0 to 65535, found `x`",
            ),
        ] {
            let error = spec.parse::<AnyClassifier>().expect_err(spec).to_string();
            assert!(
                error.starts_with(&format!("classifier `{spec}`, {message}")),
                "{error}"
            );
        }
    }
}
