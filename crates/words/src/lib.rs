//! The words of errors: the valid word that a misspelt one is most like ("did you mean …?"), and `Debug` that prints the sentence.
//!
//! ```
//! use headway_words::{hint, nearest, remedy};
//!
//! assert_eq!(nearest("exponental", ["constant", "exponential"]), Some("exponential"));
//! assert_eq!(hint("dacr", ["darc", "drr"]), "; did you mean 'darc'?");
//! assert_eq!(remedy("tcp", ["none", "udp"]), "known: none, udp");
//! ```

/// Below this similarity a suggestion would only confuse.
const LEAST_SIMILARITY: f64 = 0.65;

/// The word of `known` most like `given`, ignoring case and `_` for `-`; `None` where none is like it.
pub fn nearest<'a, W: AsRef<str> + ?Sized + 'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a W>,
) -> Option<&'a str> {
    let given = folded(given);
    let alike = known.into_iter().filter_map(|word| {
        let word = word.as_ref();
        let folded = folded(word);
        let similarity = similarity(&given, &folded);
        let edits = strsim::osa_distance(&given, &folded);
        (similarity >= LEAST_SIMILARITY).then_some((edits, similarity, word))
    });
    // A slip is few edits; of words as many away the one with the same beginning is meant.
    let best = alike.min_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    best.map(|(_, _, word)| word)
}

/// "did you mean `x`?" where a word of `known` is like `given`, else all of them: "known: x, y".
pub fn remedy<'a, W: AsRef<str> + ?Sized + 'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a W> + Clone,
) -> String {
    match nearest(given, known.clone()) {
        Some(word) => format!("did you mean `{word}`?"),
        None => {
            let known: Vec<&str> = known.into_iter().map(AsRef::as_ref).collect();
            format!("known: {}", known.join(", "))
        }
    }
}

/// "; did you mean 'x'?" where a word of `known` is like `given`, else nothing: for the end of a sentence.
pub fn hint<'a, W: AsRef<str> + ?Sized + 'a>(
    given: &str,
    known: impl IntoIterator<Item = &'a W>,
) -> String {
    nearest(given, known).map_or(String::new(), |word| format!("; did you mean '{word}'?"))
}

fn folded(word: &str) -> String {
    word.to_lowercase().replace('_', "-")
}

/// Jaro–Winkler finds long words by their beginnings, Damerau–Levenshtein short ones with two letters swapped.
fn similarity(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b).max(strsim::normalized_damerau_levenshtein(a, b))
}

/// Prints a line to standard error as `eprintln!` does, and goes on where standard error is full, closed or gone: `eprintln!` panics there.
#[macro_export]
macro_rules! remark {
    ($($what:tt)*) => {{
        let line = ::std::format!("{}\n", ::std::format_args!($($what)*));
        let _ = ::std::io::Write::write_all(&mut ::std::io::stderr(), line.as_bytes());
    }};
}

/// Implements `Debug` of an error by its `Display`: `fn main() -> Result<(), Box<dyn Error>>` prints errors by `Debug`.
///
/// ```
/// #[derive(thiserror::Error)]
/// #[error("cannot bind port {0}: choose another")]
/// struct Taken(u16);
/// headway_words::debug_is_display!(Taken);
///
/// assert_eq!(format!("Error: {:?}", Taken(80)), "Error: cannot bind port 80: choose another");
/// ```
#[macro_export]
macro_rules! debug_is_display {
    ($error:ty) => {
        impl ::std::fmt::Debug for $error {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                ::std::fmt::Display::fmt(self, f)
            }
        }
    };
}

/// Text of somebody else, fit for a terminal: control characters, and those that turn the direction of the text around them, are written as escapes.
///
/// ```
/// assert_eq!(headway_words::escaped("no\u{1b}[2Jbody"), "no\\u{1b}[2Jbody");
/// ```
#[must_use]
pub fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        let turns = matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        if c.is_control() || turns {
            out.extend(c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_words_are_found_and_others_are_not() {
        let policies = ["darc", "c-fcfs", "d-fcfs", "work-stealing"];
        for (given, expected) in [
            ("drac", Some("darc")),
            ("C_FCFS", Some("c-fcfs")),
            ("work", Some("work-stealing")),
            ("gte", None),
            ("", None),
        ] {
            assert_eq!(nearest(given, policies), expected, "{given}");
        }
        assert_eq!(
            nearest("gte", &["gets".to_owned(), "get".to_owned()]),
            Some("get")
        );
    }
}
