//! `--record`: a server's journal as a trace, in order of arrival.

use crate::output::{self, Output};
use anyhow::Result;
use headway_runtime::JournalEntry;
use headway_workload::{TraceRecord, TraceWriter};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Entries arrive in the order of completion and wait until no running request can be older. The record leaves out a request that takes longer than
/// this.
const WINDOW_NS: u64 = 10_000_000_000;
/// The largest number of waiting entries, about 100 MB.
const WAITING_MAX: usize = 4_000_000;

/// Puts entries in order and writes them.
pub(super) struct TraceRecorder {
    path: PathBuf,
    trace: TraceWriter<Output>,
    /// The earliest arrival on top: arrival, class, processor time.
    waiting: BinaryHeap<Reverse<(u64, u16, u64)>>,
    newest_ns: u64,
    /// The arrivals of the first and the last written record.
    written_ns: Option<(u64, u64)>,
    recorded: u64,
    late: u64,
}

impl TraceRecorder {
    /// Writes to `path`, which is there when the record is [finished](Self::finish).
    pub(super) fn create(path: &Path, classes: Vec<String>) -> Result<Self> {
        Ok(Self {
            path: path.to_owned(),
            trace: TraceWriter::new(output::create("--record", path)?, classes)?,
            waiting: BinaryHeap::new(),
            newest_ns: 0,
            written_ns: None,
            recorded: 0,
            late: 0,
        })
    }

    pub(super) fn add(&mut self, entry: JournalEntry) {
        if self
            .written_ns
            .is_some_and(|(_, last_ns)| entry.arrived_ns < last_ns)
        {
            self.late += 1;
            return;
        }
        self.newest_ns = self.newest_ns.max(entry.arrived_ns);
        self.waiting
            .push(Reverse((entry.arrived_ns, entry.class, entry.cpu_ns)));
    }

    /// Writes the entries that no later one can precede.
    pub(super) fn write_settled(&mut self) -> io::Result<()> {
        while let Some(&Reverse((arrived_ns, ..))) = self.waiting.peek() {
            let is_settled = arrived_ns.saturating_add(WINDOW_NS) <= self.newest_ns;
            if !is_settled && self.waiting.len() <= WAITING_MAX {
                break;
            }
            self.write_next()?;
        }
        Ok(())
    }

    /// Writes the rest, puts the file in its place, and returns a sentence about it. `dropped` requests never came here, `shed` were not run.
    pub(super) fn finish(mut self, dropped: u64, shed: u64) -> io::Result<String> {
        while !self.waiting.is_empty() {
            self.write_next()?;
        }
        self.trace.finish()?.flush()?;
        Ok(format!(
            "recorded {} requests in {}; not in it: {shed} shed, {dropped} dropped because recording fell behind, {} that took longer than 10 s",
            self.recorded,
            self.path.display(),
            self.late
        ))
    }

    fn write_next(&mut self) -> io::Result<()> {
        let Some(Reverse((arrived_ns, class, cpu_ns))) = self.waiting.pop() else {
            return Ok(());
        };
        let (first_ns, _) = self.written_ns.unwrap_or((arrived_ns, arrived_ns));
        self.written_ns = Some((first_ns, arrived_ns));
        self.recorded += 1;
        self.trace.write(&TraceRecord {
            at_ns: arrived_ns - first_ns,
            class,
            service_ns: cpu_ns,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use headway_workload::Trace;

    fn entry(arrived_ns: u64, cpu_ns: u64) -> JournalEntry {
        JournalEntry {
            arrived_ns,
            class: (cpu_ns % 2) as u16,
            cpu_ns,
            sojourn_ns: cpu_ns,
        }
    }

    #[test]
    fn what_was_done_in_another_order_is_a_trace_in_order_of_arrival() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("trace.csv");
        let classes = vec!["even, that is".to_owned(), "odd".to_owned()];
        let mut recorder = TraceRecorder::create(&path, classes).unwrap();
        for (arrived_ns, cpu_ns) in [(5_000, 1), (4_000, 2_500), (9_000, 7)] {
            recorder.add(entry(arrived_ns, cpu_ns));
            recorder.write_settled().unwrap();
        }
        // The first three are settled by now, and a fourth from before them comes too late.
        recorder.add(entry(9_000 + WINDOW_NS, 3));
        recorder.write_settled().unwrap();
        recorder.add(entry(8_000, 4));
        assert!(!path.exists(), "it is not complete");
        let said = recorder.finish(6, 5).unwrap();
        for part in ["recorded 4", "5 shed", "6 dropped", "1 that took longer"] {
            assert!(said.contains(part), "{said}");
        }
        let trace = Trace::read(&path).unwrap();
        let records: Vec<(u64, &str, u64)> = trace
            .records()
            .iter()
            .map(|record| {
                let class = trace.classes()[usize::from(record.class)].as_str();
                (record.at_ns, class, record.service_ns)
            })
            .collect();
        let expected = [
            (0, "even, that is", 2_500),
            (1_000, "odd", 1),
            (5_000, "odd", 7),
            (5_000 + WINDOW_NS, "odd", 3),
        ];
        assert_eq!(records, expected);
    }
}
