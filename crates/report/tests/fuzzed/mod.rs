//! The properties of parsing any SLO text. Checked on the corpus by `cargo test`, and by the fuzz
//! target, which includes this file.

use headway_report::{Slo, SloError};

/// A text is an SLO that reads back as written, or an error that points into it.
pub(crate) fn slo(text: &[u8]) {
    let Ok(text) = std::str::from_utf8(text) else {
        return;
    };
    match text.parse::<Slo>() {
        Ok(slo) => {
            assert!(!slo.bounds().is_empty());
            let written = slo.to_string();
            assert_eq!(written.parse::<Slo>().as_ref(), Ok(&slo), "{written}");
        }
        Err(error) => {
            let column = column(&error).expect("a mistake in the text has a place");
            assert!((1..=text.chars().count() + 1).contains(&column), "{error}");
        }
    }
}

fn column(error: &SloError) -> Option<usize> {
    match error {
        SloError::UnknownWord { column, .. }
        | SloError::Shape { column, .. }
        | SloError::Limit { column, .. } => Some(*column),
        SloError::UnknownClass { .. } => None,
    }
}
