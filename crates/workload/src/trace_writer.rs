//! Writes recorded arrivals.

use std::io::{self, Write};

use crate::trace::{COLUMNS, TraceRecord};

/// Writes a trace file for [`Trace::read`](crate::Trace::read), record by record.
///
/// ```
/// use headway_workload::{Trace, TraceRecord, TraceWriter};
/// let classes = vec!["GET".to_owned(), "SCAN".to_owned()];
/// let mut writer = TraceWriter::new(Vec::new(), classes)?;
/// writer.write(&TraceRecord { at_ns: 2_500, class: 1, service_ns: 635_000 })?;
/// let text = String::from_utf8(writer.finish()?).unwrap();
/// assert_eq!(text, "time,class,service\n2.500,SCAN,635.000\n");
/// // A reader counts from the first arrival.
/// assert_eq!(Trace::from_csv_str(&text, "db.csv").unwrap().records()[0].at_ns, 0);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    rows: csv::Writer<W>,
    classes: Vec<String>,
}

impl<W: Write> TraceWriter<W> {
    /// A trace of these classes; writes the header row.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn new(writer: W, classes: Vec<String>) -> io::Result<Self> {
        let mut rows = csv::Writer::from_writer(writer);
        rows.write_record(COLUMNS)?;
        Ok(Self { rows, classes })
    }

    /// Writes the next record. Records are in order of arrival, or the file cannot be read as a trace.
    ///
    /// # Errors
    /// What the writer answers.
    ///
    /// # Panics
    /// When the record's class is not one of the trace's classes.
    pub fn write(&mut self, record: &TraceRecord) -> io::Result<()> {
        let us = |ns: u64| format!("{}.{:03}", ns / 1_000, ns % 1_000);
        let class = &self.classes[usize::from(record.class)];
        let row = [&us(record.at_ns), class, &us(record.service_ns.max(1))];
        Ok(self.rows.write_record(row)?)
    }

    /// Flushes everything, and returns the writer.
    ///
    /// # Errors
    /// What the writer answers.
    pub fn finish(self) -> io::Result<W> {
        let rows = self.rows.into_inner();
        rows.map_err(csv::IntoInnerError::into_error)
    }
}
