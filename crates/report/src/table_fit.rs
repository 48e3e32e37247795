//! Tables on a terminal that is too narrow for them: words go to several lines, else the table turns. No number is ever split.

use crate::table::Table;

/// Beside each cell, with the gap between columns.
const PADDING: usize = 3;
/// Words narrower than this read worse than a turned table.
const LEAST_WORDS: usize = 20;

impl Table {
    /// The table as text in lines of at most `columns` characters. Where it is wider, cells of words are broken into several lines; where that does not
    /// suffice, the table turns: its rows become columns, or paragraphs. No number is split, nor the unit from it.
    pub fn within(&self, columns: usize) -> String {
        fitted(self, columns)
    }
}

/// The table as text in lines of at most `columns` characters, where its longest word fits.
fn fitted(table: &Table, columns: usize) -> String {
    let as_it_is = table.to_string();
    if fits(&as_it_is, columns) {
        return as_it_is;
    }
    if let Some(narrow) = narrowed(table, columns) {
        return narrow.to_string();
    }
    let turned = turned(table).to_string();
    if fits(&turned, columns) {
        return turned;
    }
    records(table, columns)
}

fn fits(text: &str, columns: usize) -> bool {
    text.lines().all(|line| width(line) <= columns)
}

/// The same table with words in several lines; `None` where the columns do not fit.
fn narrowed(table: &Table, columns: usize) -> Option<Table> {
    let count = table.columns().len();
    let natural: Vec<usize> = (0..count).map(|at| natural(table, at)).collect();
    let mut widths: Vec<usize> = (0..count).map(|at| least(table, at)).collect();
    let room = (columns + 1).checked_sub(PADDING * count)?;
    let mut left = room.checked_sub(widths.iter().sum())?;
    // Column by column a character, so that the narrow ones are whole first.
    while left > 0 {
        let growing = (0..count).filter(|&at| widths[at] < natural[at]);
        let Some(at) = growing.min_by_key(|&at| widths[at]) else {
            break;
        };
        widths[at] += 1;
        left -= 1;
    }
    let wrapped = |cells: &[String]| -> Vec<String> {
        let cells = cells.iter().zip(&widths);
        cells.map(|(cell, &width)| wrap(cell, width)).collect()
    };
    let mut narrow = Table::new(wrapped(table.columns()));
    for row in table.rows() {
        narrow.push(wrapped(row));
    }
    Some(narrow)
}

/// A column's width with each cell in a line.
fn natural(table: &Table, column: usize) -> usize {
    let cells = table.rows().iter().map(|row| width(&row[column]));
    cells
        .chain([width(&table.columns()[column])])
        .max()
        .unwrap_or_default()
}

/// The least width of a column: whole cells of numbers, whole words of others.
fn least(table: &Table, column: usize) -> usize {
    let numeric = table.is_numeric(column);
    let longest_word = |cell: &str| words(cell).map(|word| width(word.trim_end())).max();
    let cells = table.rows().iter().map(|row| &row[column]);
    let cells = cells.map(|cell| {
        if numeric {
            width(cell)
        } else {
            let word = longest_word(cell).unwrap_or_default();
            word.max(width(cell).min(LEAST_WORDS))
        }
    });
    let name = longest_word(&table.columns()[column]).unwrap_or_default();
    cells.chain([name]).max().unwrap_or_default()
}

/// A column for each row, and a row for each column: the first column's cells are the names.
fn turned(table: &Table) -> Table {
    let names = table.rows().iter().map(|row| row[0].clone());
    let mut turned = Table::new([table.columns()[0].clone()].into_iter().chain(names));
    for (at, column) in table.columns().iter().enumerate().skip(1) {
        let cells = table.rows().iter().map(|row| row[at].clone());
        turned.push([column.clone()].into_iter().chain(cells));
    }
    turned
}

/// A paragraph for each row, with a line for each of its cells.
fn records(table: &Table, columns: usize) -> String {
    let names = table.columns().iter().map(|name| width(name));
    let indent = names.max().unwrap_or_default() + PADDING;
    let room = columns.saturating_sub(indent).max(LEAST_WORDS);
    let row = |row: &Vec<String>| {
        let cells = table.columns().iter().zip(row);
        let lines = cells.map(|(name, cell)| {
            let cell = wrap(cell, room).replace('\n', &format!("\n{}", " ".repeat(indent)));
            let gap = " ".repeat(indent - 1 - width(name));
            format!(" {name}{gap}{cell}").trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    };
    let rows: Vec<_> = table.rows().iter().map(row).collect();
    rows.join("\n\n")
}

/// The text in lines of at most `columns` characters, longer words whole.
fn wrap(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    let mut lines = vec![String::new()];
    for word in words(text) {
        let line = lines.last_mut().expect("there is a line");
        if line.is_empty() || width(line) + width(word.trim_end()) <= columns {
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    let lines: Vec<_> = lines.iter().map(|line| line.trim_end()).collect();
    lines.join("\n")
}

/// The pieces between which a line may end: behind a space, and behind the comma before a parameter of a policy. A unit stays with its number.
fn words(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        let ends = rest.char_indices().zip(rest.chars().skip(1));
        let mut before = ' ';
        let mut end = rest.len();
        for ((at, letter), next) in ends {
            let unit = before.is_ascii_digit() && is_unit(&rest[at + letter.len_utf8()..]);
            let space = letter == ' ' && next != ' ' && !unit;
            let comma = letter == ',' && next.is_alphabetic();
            if space || comma {
                end = at + letter.len_utf8();
                break;
            }
            before = letter;
        }
        let (word, after) = rest.split_at(end);
        rest = after;
        Some(word)
    })
}

/// Whether the text begins with a unit of a number.
fn is_unit(text: &str) -> bool {
    let word = text.split([' ', ',', ';', ']']).next().unwrap_or_default();
    matches!(word, "ns" | "µs" | "us" | "ms" | "s" | "%")
}

fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::class_table;
    use crate::testing::run;

    /// The parts of a text that hold a digit, with their units.
    fn numbers(table: &Table) -> Vec<String> {
        let cells = table.rows().iter().flatten();
        let words = cells.flat_map(|cell| words(cell).map(|word| word.trim_end().to_owned()));
        words
            .filter(|word| word.contains(|c: char| c.is_ascii_digit()))
            .collect()
    }

    #[test]
    fn no_width_splits_a_number() {
        let policies = Table::new(["policy", "rps", "what it does"])
            .row([
                "compose,discipline=typed,k=12,q=100us",
                "4.80M",
                "one queue of 1024 requests, and a turn of 25 µs for each",
            ])
            .row(["c-fcfs", "3.10 [3.05, 3.14]", "one queue for all workers"]);
        for table in [class_table(&run()), policies] {
            for columns in 30..200 {
                let shown = fitted(&table, columns);
                assert!(fits(&shown, columns.max(45)), "{columns}:\n{shown}");
                for number in numbers(&table) {
                    assert!(shown.contains(&number), "{columns}: {number} of\n{shown}");
                }
            }
        }
    }

    #[test]
    fn a_runs_classes_turn_on_a_terminal_of_80_columns() {
        let shown = fitted(&class_table(&run()), 80);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(
            lines[0].starts_with(" class") && lines[0].contains("overall"),
            "{shown}"
        );
        assert!(lines[2].starts_with(" count"), "{shown}");
        assert_eq!(lines.len(), 2 + class_table(&run()).columns().len() - 1);
    }

    #[test]
    fn words_end_behind_spaces_and_before_parameters() {
        let found: Vec<&str> = words("darc,delay=10,k=3 at 25 µs of 1,000").collect();
        assert_eq!(
            found,
            [
                "darc,",
                "delay=10,",
                "k=3 ",
                "at ",
                "25 µs ",
                "of ",
                "1,000"
            ]
        );
        assert_eq!(wrap("darc,delay=10,k=3", 8), "darc,\ndelay=10,\nk=3");
    }
}
