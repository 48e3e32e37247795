//! Prose on a terminal: lines that are too long for it break between words, where the terminal itself would break words and numbers.

use std::fmt::Arguments;
use std::io::{self, Write};

/// Writes lines of prose no longer than a terminal is wide. Lines for programs pass as they are.
pub(super) struct Wrapped<W: Write> {
    inner: W,
    columns: usize,
    /// The line that has not ended.
    line: Vec<u8>,
}

impl<W: Write> Wrapped<W> {
    pub(super) fn new(inner: W, columns: usize) -> Self {
        Self {
            inner,
            columns,
            line: Vec::new(),
        }
    }

    /// Passes the kept line on.
    fn pass(&mut self) -> io::Result<()> {
        let line = std::mem::take(&mut self.line);
        match std::str::from_utf8(&line) {
            Ok(line) => self.inner.write_all(wrapped(line, self.columns).as_bytes()),
            Err(_) => self.inner.write_all(&line),
        }
    }
}

impl<W: Write> Write for Wrapped<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend_from_slice(part);
            if part.ends_with(b"\n") {
                self.pass()?;
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.pass()?;
        self.inner.flush()
    }
}

/// A sentence for standard error, broken where that is a terminal.
pub(crate) fn for_stderr(sentence: Arguments<'_>) -> String {
    let sentence = sentence.to_string();
    let Some((terminal_size::Width(columns), _)) = terminal_size::terminal_size_of(io::stderr())
    else {
        return sentence;
    };
    let lines: Vec<String> = sentence
        .split('\n')
        .map(|line| wrapped(line, usize::from(columns)))
        .collect();
    lines.join("\n")
}

/// The line, broken between words so that no part is longer than `columns`; a longer word stays whole. The parts begin below the line's first
/// word. Lines of JSON, CSV or Markdown tables stay as they are.
fn wrapped(line: &str, columns: usize) -> String {
    if line.trim_end().chars().count() <= columns || is_for_programs(line) {
        return line.to_owned();
    }
    let text = line.trim_start_matches(' ');
    let indent = &line[..line.len() - text.len()];
    let mut lines = String::from(indent);
    let mut width = indent.len();
    let mut is_first = true;
    for word in text
        .split_inclusive(' ')
        .flat_map(|word| parts_of(word, columns))
    {
        let letters = word.trim_end().chars().count();
        if !is_first && width + letters > columns {
            lines.truncate(lines.trim_end_matches(' ').len());
            lines.push('\n');
            lines.push_str(indent);
            width = indent.len();
        }
        is_first = false;
        lines.push_str(word);
        width += word.chars().count();
    }
    lines
}

/// The word; one that is too long for a line falls apart behind its commas, as a policy with many parameters does.
fn parts_of(word: &str, columns: usize) -> impl Iterator<Item = &str> {
    let is_long = word.trim_end().chars().count() > columns;
    word.split_inclusive(move |letter| is_long && letter == ',')
}

/// Whether a program may read the line.
fn is_for_programs(line: &str) -> bool {
    let count = |letter: char| line.matches(letter).count();
    let is_csv = count(',') > line.matches(", ").count() + count(' ');
    is_csv
        || line
            .trim_start()
            .starts_with(['{', '}', '[', ']', '"', '|'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lines_break_between_words_and_keep_their_indent() {
        let line = "  GET, p99 of all requests: 138 ms under c-fcfs, 1791053 ns under darc";
        for columns in 20..100 {
            let parts = wrapped(line, columns);
            assert!(
                parts
                    .lines()
                    .all(|part| part.chars().count() <= columns && part.starts_with("  ")),
                "{columns}: {parts}"
            );
            let words = |text: &str| {
                text.split_whitespace()
                    .map(str::to_owned)
                    .collect::<Vec<_>>()
            };
            assert_eq!(words(&parts), words(line), "{columns}");
        }
        assert_eq!(wrapped(line, 70), line);
        assert_eq!(wrapped("a 0123456789 b", 4), "a\n0123456789\nb");
        let spec = wrapped("use darc,delta=2,window=50000 now", 16);
        assert_eq!(spec, "use darc,\ndelta=2,\nwindow=50000 now");
        assert_eq!(wrapped("µµµ µµµ", 7), "µµµ µµµ", "letters, not bytes");
    }

    #[test]
    fn lines_for_programs_stay_whole() {
        for line in [
            r#"  "note": "one two three four five six","#,
            "policy,load,p99,class,requests,seed two",
            "| a | b | c | d | e | f | g |",
            r#"{"a": 1, "b": 2, "c": 3, "d": 4}"#,
        ] {
            assert_eq!(wrapped(line, 12), line);
        }
    }

    #[test]
    fn a_line_is_broken_once_it_is_whole_and_the_rest_at_a_flush() {
        let mut kept = Vec::new();
        let mut writer = Wrapped::new(&mut kept, 8);
        writer.write_all(b"one two th").unwrap();
        writer.write_all(b"ree\nfour").unwrap();
        writer.flush().unwrap();
        assert_eq!(String::from_utf8(kept).unwrap(), "one two\nthree\nfour");
    }
}
