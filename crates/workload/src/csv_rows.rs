//! The CSV of traces and sample files.

use csv::StringRecord;

use crate::duration;
use crate::error::{Error, Problem};
use crate::section::Document;

/// A value, or its column and its problem.
pub(crate) type Checked<T> = Result<T, (&'static str, Problem)>;

/// A service time as in trace and sample files, at least 1 ns.
pub(crate) fn service_time(text: &str) -> Result<u64, Problem> {
    match duration::parse_or_us(text)? {
        0 => Err(Problem::Range {
            required: "at least 1ns",
            given: format!("`{text}`"),
        }),
        service_ns => Ok(service_ns),
    }
}

pub(crate) fn csv_reader(text: &str, has_headers: bool) -> csv::Reader<&[u8]> {
    csv::ReaderBuilder::new()
        .has_headers(has_headers)
        .flexible(!has_headers)
        .trim(csv::Trim::All)
        .comment(Some(b'#'))
        .from_reader(text.as_bytes())
}

pub(crate) fn csv_error(document: Document<'_>, error: &csv::Error) -> Error {
    let message = match error.kind() {
        csv::ErrorKind::UnequalLengths {
            expected_len, len, ..
        } => {
            format!("the header has {expected_len} columns, but this row has {len}")
        }
        _ => error.to_string(),
    };
    let offset = start_of(document.text, error.position());
    document.error(offset, String::new(), Problem::Syntax(message))
}

pub(crate) fn at(document: Document<'_>, row: &StringRecord, key: &str, problem: Problem) -> Error {
    document.error(
        start_of(document.text, row.position()),
        key.to_owned(),
        problem,
    )
}

/// The byte offset of a row's own line: the reader's position precedes the blank lines and comments before it.
fn start_of(text: &str, position: Option<&csv::Position>) -> usize {
    let offset = position.map_or(0, csv::Position::byte) as usize;
    let rest = text.get(offset..).unwrap_or_default();
    offset
        + rest
            .split_inclusive('\n')
            .take_while(|line: &&str| line.starts_with('#') || matches!(*line, "\n" | "\r\n"))
            .map(str::len)
            .sum::<usize>()
}
