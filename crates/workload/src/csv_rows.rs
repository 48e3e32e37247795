//! The CSV of traces and sample files.

use std::borrow::Cow;

use csv::StringRecord;

use crate::duration;
use crate::error::{Error, Problem};
use crate::section::Document;

/// A value, or its column and its problem.
pub(crate) type Checked<T> = Result<T, (&'static str, Problem)>;

/// A service time as in trace and sample files, at least 1 ns: what is shorter and not zero counts as that.
pub(crate) fn service_time(text: &str) -> Result<u64, Problem> {
    let text = &ungrouped(text);
    match duration::parse_or_us(text)? {
        0 if duration::is_positive(text) => Ok(1),
        0 => Err(Problem::Range {
            required: "at least 1ns",
            given: format!("`{text}`"),
        }),
        service_ns => Ok(service_ns),
    }
}

/// A number without the commas between its thousands, `1,000.5`; any other text as it is.
pub(crate) fn ungrouped(text: &str) -> Cow<'_, str> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != ',');
    let (whole, rest) = text.split_at(end.unwrap_or(text.len()));
    let mut groups = whole.split(',');
    let first = groups
        .next()
        .is_some_and(|group| (1..=3).contains(&group.len()));
    if whole.contains(',') && first && groups.all(|group| group.len() == 3) {
        return format!("{}{rest}", whole.replace(',', "")).into();
    }
    text.into()
}

/// The text with a header row that begins with `#` made readable, `#time,class,service`, unless another header follows. Nothing else moves.
pub(crate) fn with_header<'a>(text: &'a str, columns: &[&str]) -> Cow<'a, str> {
    let is_header = |row: &str| {
        let mut columns = columns.iter();
        columns.all(|column| row.split(',').any(|name| name.trim() == *column))
    };
    let (mut offset, mut header) = (0, None);
    for line in text.split_inclusive('\n') {
        let row = line.trim_start();
        match row.strip_prefix('#') {
            Some(names) if is_header(names) => header = Some(offset + line.len() - row.len()),
            None if is_header(row) => return text.into(),
            None if !row.trim().is_empty() => break,
            _ => {}
        }
        offset += line.len();
    }
    match header {
        Some(at) => format!("{} {}", &text[..at], &text[at + 1..]).into(),
        None => text.into(),
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
