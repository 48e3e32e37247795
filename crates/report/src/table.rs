//! Tables of text, shown alike on a terminal, in a pipe, as CSV and in HTML.

use std::fmt;

use comfy_table::{CellAlignment, ContentArrangement, LineStyle, TableStyle};

use crate::format::{duration_us, metric, percent, significant};
use crate::run::{Run, Summary};

/// One rule, under the header: frames and vertical lines hinder copying.
const STYLE: TableStyle =
    TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// Rows of cells under named columns. Columns of numbers are aligned to the right.
///
/// # Examples
///
/// ```
/// use headway_report::Table;
///
/// let table = Table::new(["policy", "p99.9"]).row(["c-fcfs", "120"]).row(["darc", "3.1"]);
/// assert_eq!(
///     table.to_string(),
///     " policy   p99.9 \n────────────────\n c-fcfs     120 \n darc       3.1 "
/// );
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table of these columns, without rows.
    pub fn new<S: Into<String>>(columns: impl IntoIterator<Item = S>) -> Self {
        Self {
            columns: columns.into_iter().map(Into::into).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row at the end.
    ///
    /// # Panics
    ///
    /// If the row does not have one cell for each column.
    #[must_use]
    pub fn row<S: Into<String>>(mut self, cells: impl IntoIterator<Item = S>) -> Self {
        self.push(cells);
        self
    }

    /// Adds a row at the end, in place.
    ///
    /// # Panics
    ///
    /// If the row does not have one cell for each column.
    pub fn push<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let row: Vec<String> = cells.into_iter().map(Into::into).collect();
        assert_eq!(
            row.len(),
            self.columns.len(),
            "one cell for each of {:?}",
            self.columns
        );
        self.rows.push(row);
    }

    /// The columns' names.
    pub fn columns(&self) -> &[String] {
        &self.columns
    }

    /// The rows, each with one cell per column.
    pub fn rows(&self) -> &[Vec<String>] {
        &self.rows
    }

    /// Whether every cell of the column reads as a number, so that it is aligned to the right.
    pub fn is_numeric(&self, column: usize) -> bool {
        !self.rows.is_empty() && self.rows.iter().all(|row| reads_as_number(&row[column]))
    }
}

/// A number, perhaps with a unit or an interval after it, or a lone dash for a missing one.
fn reads_as_number(cell: &str) -> bool {
    let digits = cell.trim_start_matches(['-', '+', '<', '>', '≤', '≥', '×', '÷', '~']);
    matches!(cell, "" | "–" | "-") || digits.starts_with(|c: char| c.is_ascii_digit())
}

impl Table {
    fn laid_out(&self) -> comfy_table::Table {
        let mut table = comfy_table::Table::new();
        table
            .load_style(STYLE)
            .set_content_arrangement(ContentArrangement::Disabled)
            .set_header(&self.columns)
            .add_rows(&self.rows);
        for (index, column) in table.column_iter_mut().enumerate() {
            if self.is_numeric(index) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        table
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.laid_out())
    }
}

/// One run, a row per class and one for all: counts, service time, latency and slowdown.
pub fn class_table(run: &Run) -> Table {
    let mut table = Table::new([
        "class",
        "count",
        "dropped",
        "service",
        "mean",
        "p50",
        "p99",
        "p99.9",
        "max",
        "slowdown p50",
        "p99",
        "p99.9",
    ]);
    for class in &run.classes {
        let counts = [class.count.to_string(), class.dropped.to_string()];
        let service = duration_us(class.service_us);
        table.push(class_row(
            &class.name,
            counts,
            service,
            &class.latency_us,
            &class.slowdown,
        ));
    }
    let count: u64 = run.classes.iter().map(|class| class.count).sum();
    let counts = [count.to_string(), run.meta.dropped.to_string()];
    let (latency_us, slowdown) = (&run.overall.latency_us, &run.overall.slowdown);
    table.push(class_row(
        "overall",
        counts,
        String::new(),
        latency_us,
        slowdown,
    ));
    table
}

fn class_row(
    name: &str,
    [count, dropped]: [String; 2],
    service: String,
    latency_us: &Summary,
    slowdown: &Summary,
) -> Vec<String> {
    let Summary {
        mean,
        p50,
        p99,
        p999,
        max,
        ..
    } = *latency_us;
    let mut row = vec![name.to_owned(), count, dropped, service];
    row.extend([mean, p50, p99, p999, max].map(duration_us));
    row.extend([slowdown.p50, slowdown.p99, slowdown.p999].map(|value| significant(value, 3)));
    row
}

/// Several runs, a row each: load, rates, and the tails that policies are compared by.
///
/// "Worst class" is the largest p99.9 slowdown of any class. An overloaded run shows the word
/// instead of its tails, since these measure only the run's length.
pub fn comparison_table(runs: &[Run]) -> Table {
    let mut table = Table::new([
        "policy",
        "load",
        "offered rps",
        "achieved rps",
        "utilization",
        "dropped",
        "latency p99.9",
        "slowdown p99.9",
        "worst class p99.9",
    ]);
    for run in runs {
        table.push(comparison_row(run));
    }
    table
}

fn comparison_row(run: &Run) -> Vec<String> {
    let meta = &run.meta;
    let worst = run
        .classes
        .iter()
        .map(|class| class.slowdown.p999)
        .fold(f64::NAN, f64::max);
    let tails = if meta.overloaded {
        ["overloaded"; 3].map(str::to_owned)
    } else {
        let Summary { p999, .. } = run.overall.slowdown;
        let latency = duration_us(run.overall.latency_us.p999);
        [latency, significant(p999, 3), significant(worst, 3)]
    };
    let mut row = vec![
        meta.policy.clone(),
        significant(meta.load, 3),
        metric(meta.offered_rps),
        metric(meta.achieved_rps),
        percent(meta.utilization),
        meta.dropped.to_string(),
    ];
    row.extend(tails);
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::run;

    #[test]
    fn columns_of_numbers_align_right_and_words_left() {
        let table = Table::new(["a", "b", "c"])
            .row(["1", "x", "–"])
            .row(["12 µs", "2", "≥ 3"]);
        assert_eq!(
            [0, 1, 2].map(|column| table.is_numeric(column)),
            [true, false, false]
        );
        let table = Table::new(["a"]).row(["≥3"]).row(["–"]);
        assert!(table.is_numeric(0));
    }

    #[test]
    fn a_table_fits_the_columns_that_there_are() {
        let policy = "compose,discipline=typed,placement=reserved,control=darc,preemption=quantum";
        let table = Table::new(["policy", "slowdown p99.9"]).row([policy, "3.10 [3.05, 3.14]"]);
        assert_eq!(table.within(200), table.to_string());
        let narrow = table.within(60);
        assert!(
            narrow.lines().all(|line| line.chars().count() <= 60),
            "{narrow}"
        );
        let letters = |text: &str| text.chars().filter(|c| c.is_alphanumeric()).count();
        assert_eq!(letters(&narrow), letters(&table.to_string()), "{narrow}");
    }

    #[test]
    #[should_panic(expected = "one cell for each")]
    fn a_row_must_fit_the_columns() {
        Table::new(["a", "b"]).push(["1"]);
    }

    #[test]
    fn a_run_shows_each_class_and_all_of_them() {
        let shown = class_table(&run()).to_string();
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 5, "{shown}");
        assert!(lines[2].starts_with(" short"), "{shown}");
        assert!(lines[4].starts_with(" overall"), "{shown}");
        let widths = lines.iter().map(|line| line.chars().count());
        assert!(
            widths
                .clone()
                .all(|width| Some(width) == widths.clone().next()),
            "{shown}"
        );
    }

    #[test]
    fn the_tail_of_an_overloaded_run_is_not_shown() {
        let mut overloaded = run();
        overloaded.meta.overloaded = true;
        let table = comparison_table(&[run(), overloaded]);
        assert_eq!(table.rows()[0][7], "4.00");
        assert_eq!(table.rows()[1][6..], ["overloaded"; 3]);
    }
}
