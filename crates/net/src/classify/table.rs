//! The lookup tables of classifiers: built once, read per request.

use std::collections::BTreeMap;

use thiserror::Error;

/// Longest command word a [`WordTable`] holds, in bytes. Redis' longest is 20.
pub const MAX_WORD_BYTES: usize = 24;

/// Numbers to classes: a list of pairs, or the number itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NumberTable(Numbers);

#[derive(Debug, Clone, PartialEq, Eq)]
enum Numbers {
    Identity,
    Sorted(Box<[(u64, u16)]>),
}

impl NumberTable {
    /// The table in which each number from 0 to 65 535 is its own class.
    #[must_use]
    pub const fn identity() -> Self {
        Self(Numbers::Identity)
    }

    /// The class of `number`.
    #[inline]
    #[must_use]
    pub fn get(&self, number: u64) -> Option<u16> {
        match &self.0 {
            Numbers::Identity => u16::try_from(number).ok(),
            Numbers::Sorted(pairs) => {
                let at = pairs.binary_search_by_key(&number, |&(key, _)| key).ok()?;
                Some(pairs[at].1)
            }
        }
    }
}

/// Collects (number, class) pairs; of two pairs with the same number the later one counts.
impl FromIterator<(u64, u16)> for NumberTable {
    fn from_iter<I: IntoIterator<Item = (u64, u16)>>(pairs: I) -> Self {
        let sorted = BTreeMap::from_iter(pairs);
        Self(Numbers::Sorted(sorted.into_iter().collect()))
    }
}

/// Command words to classes.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct WordTable {
    sorted: Box<[(Word, u16)]>,
    case: Case,
}

/// Whether "GET" and "get" are one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Case {
    #[default]
    Sensitive,
    Folded,
}

/// A word for a [`WordTable`] is longer than [`MAX_WORD_BYTES`].
#[derive(Clone, PartialEq, Eq, Error)]
#[error("command word {word:?} is longer than {MAX_WORD_BYTES} bytes")]
pub struct WordTooLong {
    /// The word refused.
    pub word: String,
}

headway_words::debug_is_display!(WordTooLong);

impl WordTable {
    /// A table that distinguishes upper from lower case.
    ///
    /// Of two pairs with the same word the later one counts.
    ///
    /// # Errors
    /// [`WordTooLong`] names the first word over [`MAX_WORD_BYTES`].
    pub fn case_sensitive<'a>(
        pairs: impl IntoIterator<Item = (&'a str, u16)>,
    ) -> Result<Self, WordTooLong> {
        Self::new(pairs, Case::Sensitive)
    }

    /// A table in which ASCII case makes no difference.
    ///
    /// Of two pairs with the same word the later one counts.
    ///
    /// # Errors
    /// [`WordTooLong`] names the first word over [`MAX_WORD_BYTES`].
    pub fn case_folded<'a>(
        pairs: impl IntoIterator<Item = (&'a str, u16)>,
    ) -> Result<Self, WordTooLong> {
        Self::new(pairs, Case::Folded)
    }

    fn new<'a>(
        pairs: impl IntoIterator<Item = (&'a str, u16)>,
        case: Case,
    ) -> Result<Self, WordTooLong> {
        let mut sorted = BTreeMap::new();
        for (word, class) in pairs {
            let key = Word::pack(word.as_bytes(), case).ok_or_else(|| WordTooLong {
                word: word.to_owned(),
            })?;
            sorted.insert(key, class);
        }
        Ok(Self {
            sorted: sorted.into_iter().collect(),
            case,
        })
    }

    /// The class of `word`.
    #[inline]
    #[must_use]
    pub fn get(&self, word: &[u8]) -> Option<u16> {
        let key = Word::pack(word, self.case)?;
        let at = self
            .sorted
            .binary_search_by_key(&key, |&(key, _)| key)
            .ok()?;
        Some(self.sorted[at].1)
    }
}

/// A word padded with zeros, so that a comparison takes a few instructions and no loop. The
/// length goes first: it tells "GET" from "GET\0" and most words from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Word {
    len: u8,
    packed: [u64; MAX_WORD_BYTES / 8],
}

impl Word {
    #[inline]
    fn pack(word: &[u8], case: Case) -> Option<Self> {
        let mut padded = [0; MAX_WORD_BYTES];
        padded.get_mut(..word.len())?.copy_from_slice(word);
        if case == Case::Folded {
            padded.make_ascii_uppercase();
        }
        let (eights, _) = padded.as_chunks();
        let packed = std::array::from_fn(|at| u64::from_be_bytes(eights[at]));
        Some(Self {
            len: word.len() as u8,
            packed,
        })
    }
}

/// The word at the start of a line, without the delimiter that must follow it: a word at
/// the very end of a datagram may have been cut.
#[inline]
pub(super) fn leading_word<'a>(line: &'a [u8], delimiters: &[u8]) -> Option<&'a [u8]> {
    let window = &line[..line.len().min(MAX_WORD_BYTES + 1)];
    let end = window.iter().position(|byte| delimiters.contains(byte))?;
    Some(&window[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identity_is_bounded_by_the_class_type() {
        let table = NumberTable::identity();
        assert_eq!(table.get(0), Some(0));
        assert_eq!(table.get(65_535), Some(65_535));
        assert_eq!(table.get(65_536), None);
    }

    #[test]
    fn pairs_are_found_and_others_are_not() {
        let table = NumberTable::from_iter([(900, 1), (3, 0), (900, 2)]);
        assert_eq!(table.get(3), Some(0));
        assert_eq!(table.get(900), Some(2), "the later pair counts");
        assert_eq!(table.get(4), None);
    }

    #[test]
    fn words_match_whole_and_by_case_rule() {
        let folded = WordTable::case_folded([("get", 0), ("GETSET", 1)]).unwrap();
        for (word, class) in [("GET", 0), ("gEt", 0), ("getset", 1)] {
            assert_eq!(folded.get(word.as_bytes()), Some(class), "{word}");
        }
        for word in ["", "GE", "GETS", "GET\0", "GETSETS"] {
            assert_eq!(folded.get(word.as_bytes()), None, "{word:?}");
        }
        let sensitive = WordTable::case_sensitive([("get", 0)]).unwrap();
        assert_eq!(
            (sensitive.get(b"get"), sensitive.get(b"GET")),
            (Some(0), None)
        );
    }

    #[test]
    fn overlong_words_are_refused_when_built_and_unknown_when_read() {
        let longest = "x".repeat(MAX_WORD_BYTES);
        let longer = "x".repeat(MAX_WORD_BYTES + 1);
        let table = WordTable::case_sensitive([(longest.as_str(), 5)]).unwrap();
        assert_eq!(table.get(longest.as_bytes()), Some(5));
        assert_eq!(table.get(longer.as_bytes()), None);
        let refused = WordTable::case_sensitive([(longer.as_str(), 5)]);
        assert_eq!(refused, Err(WordTooLong { word: longer }));
    }
}
