//! The thread beside a server that empties its journal, for `--stats` and `--record`. Requests wait neither for it nor for what it writes.

use super::meter::Meter;
use super::record::TraceRecorder;
use anyhow::{Context, Result, anyhow};
use headway_machine::stderr;
use headway_runtime::{Journal, JournalEntry, Observer, Server};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Room for what each worker does between two looks: 6.5 million requests a second.
pub(super) const JOURNAL_ENTRIES: usize = 1 << 16;
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// The consumers of the journal.
pub(super) struct Wish {
    /// Time between two sets of lines.
    pub(super) stats: Option<Duration>,
    pub(super) recorder: Option<TraceRecorder>,
}

impl Wish {
    /// Lines every `stats` ns, and a record of these classes, as far as asked for.
    pub(super) fn new(
        stats: Option<u64>,
        record: Option<&Path>,
        classes: Vec<String>,
    ) -> Result<Self> {
        let recorder = record.map(|path| TraceRecorder::create(path, classes));
        Ok(Self {
            stats: stats.map(Duration::from_nanos),
            recorder: recorder.transpose()?,
        })
    }
}

/// How many entries of each worker the server is to keep, if somebody reads them.
pub(super) fn journal_entries(is_read: bool) -> usize {
    if is_read { JOURNAL_ENTRIES } else { 0 }
}

/// The thread, while the server runs.
pub(super) struct WatchThread {
    thread: JoinHandle<Result<()>>,
    ending: Arc<AtomicBool>,
}

impl WatchThread {
    /// Starts the thread, if there is a consumer; `interrupts` says whether the policy interrupts requests.
    pub(super) fn begin(server: &Server, wish: Wish, interrupts: bool) -> Result<Option<Self>> {
        let observer = server.observer();
        let Some(journal) = observer.take_journal() else {
            return Ok(None);
        };
        let ending = Arc::new(AtomicBool::new(false));
        let ends = Arc::clone(&ending);
        let classes = observer.stats().classes.len();
        let watcher = ServeWatcher {
            meter: wish
                .stats
                .map(|every| (every, Meter::new(classes, interrupts))),
            recorder: wish.recorder,
            failed: None,
            observer,
            journal,
        };
        let thread = std::thread::Builder::new()
            .name("hw-watch".into())
            .spawn(move || watcher.run(&ends))
            .context("cannot start the thread that watches the server")?;
        Ok(Some(Self { thread, ending }))
    }

    /// Once the server has stopped: takes the rest and completes the record.
    pub(super) fn end(self) -> Result<()> {
        self.ending.store(true, Ordering::Release);
        self.thread.thread().unpark();
        let ended = self.thread.join();
        ended.unwrap_or_else(|_| {
            Err(anyhow!(
                "the thread that watched the server panicked; its message says why"
            ))
        })
    }
}

struct ServeWatcher {
    observer: Observer,
    journal: Journal,
    meter: Option<(Duration, Meter)>,
    recorder: Option<TraceRecorder>,
    /// The reason why the recorder stopped.
    failed: Option<std::io::Error>,
}

impl ServeWatcher {
    fn run(mut self, ending: &AtomicBool) -> Result<()> {
        let start = Instant::now();
        let mut told = start;
        loop {
            // Looked at first: what the server did until its end is then in the journal.
            let is_last = ending.load(Ordering::Acquire);
            self.take_entries();
            let now = Instant::now();
            if let Some((every, meter)) = &mut self.meter
                && (now - told >= *every || is_last)
            {
                say(&meter.lines(self.observer.stats(), now - start, now - told));
                told = now;
            }
            if is_last {
                return self.finish();
            }
            std::thread::park_timeout(LOOK_EVERY);
        }
    }

    fn take_entries(&mut self) {
        let Self {
            journal,
            meter,
            recorder,
            ..
        } = self;
        journal.drain(|entry: JournalEntry| {
            if let Some((_, meter)) = meter {
                meter.add(&entry);
            }
            if let Some(recorder) = recorder {
                recorder.add(entry);
            }
        });
        let written = recorder
            .as_mut()
            .map_or(Ok(()), TraceRecorder::write_settled);
        if let Err(error) = written {
            // At once, while there is time to make room; and again by the exit status.
            say(&[format!("recording ends: {error}")]);
            self.recorder = None;
            self.failed = Some(error);
        }
    }

    fn finish(self) -> Result<()> {
        if let Some(error) = self.failed {
            return Err(error.into());
        }
        if let Some(recorder) = self.recorder {
            let said = recorder.finish(self.journal.dropped(), self.observer.stats().shed)?;
            say(&[said]);
        }
        Ok(())
    }
}

fn say(lines: &[String]) {
    for line in lines {
        stderr::write_line(line);
    }
}
