//! A journal of requests, one by one, for a thread beside the server: each worker writes into a ring of its own, and the reader empties
//! them all. A worker that finds its ring full counts the entry as dropped; it neither waits, allocates nor locks.

use std::sync::Arc;

use crate::stats::tally::Count;
use headway_sync::Padded;
use headway_sync::ring::{Consumer, Producer, WORD_BITS, ring};

/// Words of an entry: arrival, processor time, time in the server beside the class.
const WORDS: usize = 3;
const CLASS_BITS: u32 = 16;
const TIME_MAX: u64 = (1 << WORD_BITS) - 1;
const SOJOURN_MAX: u64 = (1 << (WORD_BITS - CLASS_BITS)) - 1;

/// A request that was run to its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct JournalEntry {
    /// When it was taken from its socket (of a replay: when it was to arrive), ns on the scale of
    /// [`Clock::global`](headway_machine::Clock::global).
    pub arrived_ns: u64,
    /// Its class; the number of declared classes stands for UNKNOWN.
    pub class: u16,
    /// How long its handler ran, interruptions not counted, ns.
    pub cpu_ns: u64,
    /// From its arrival to its response, ns; at most 39 hours.
    pub sojourn_ns: u64,
}

impl JournalEntry {
    fn words(self) -> [u64; WORDS] {
        let sojourn = self.sojourn_ns.min(SOJOURN_MAX) << CLASS_BITS;
        [
            self.arrived_ns.min(TIME_MAX),
            self.cpu_ns.min(TIME_MAX),
            sojourn | u64::from(self.class),
        ]
    }

    fn of([arrived_ns, cpu_ns, rest]: [u64; WORDS]) -> Self {
        Self {
            arrived_ns,
            class: rest as u16,
            cpu_ns,
            sojourn_ns: rest >> CLASS_BITS,
        }
    }
}

/// One worker's end.
pub(crate) struct JournalWriter {
    ring: Producer,
    dropped: Arc<Padded<Count>>,
}

impl JournalWriter {
    #[inline]
    pub(crate) fn write(&mut self, entry: JournalEntry) {
        if !self.ring.has_room(WORDS) {
            self.dropped.add(1);
            return;
        }
        for word in entry.words() {
            let pushed = self.ring.push(word);
            debug_assert!(pushed.is_ok(), "there was room");
        }
    }
}

/// The reader's end; see [`Observer::take_journal`](crate::Observer::take_journal).
pub struct Journal {
    lanes: Vec<JournalLane>,
}

struct JournalLane {
    ring: Consumer,
    /// Of an entry whose other words are still to come.
    words: [u64; WORDS],
    filled: usize,
    dropped: Arc<Padded<Count>>,
}

impl Journal {
    /// A journal with a ring for `entries` of each of `workers`, and their ends of it.
    pub(crate) fn new(workers: usize, entries: usize) -> (Self, Vec<JournalWriter>) {
        let (lanes, writers) = (0..workers)
            .map(|_| {
                let (producer, consumer) = ring(entries * WORDS);
                let dropped = Arc::new(Padded::default());
                let writer = JournalWriter {
                    ring: producer,
                    dropped: Arc::clone(&dropped),
                };
                let lane = JournalLane {
                    ring: consumer,
                    words: [0; WORDS],
                    filled: 0,
                    dropped,
                };
                (lane, writer)
            })
            .unzip();
        (Self { lanes }, writers)
    }

    /// Takes every entry that is there, worker by worker, each worker's in the order of completion.
    pub fn drain(&mut self, mut each: impl FnMut(JournalEntry)) {
        for lane in &mut self.lanes {
            while let Some(entry) = lane.next() {
                each(entry);
            }
        }
    }

    /// Requests that found a full ring, and are in no entry.
    #[must_use]
    pub fn dropped(&self) -> u64 {
        self.lanes.iter().map(|lane| lane.dropped.get()).sum()
    }
}

impl JournalLane {
    fn next(&mut self) -> Option<JournalEntry> {
        while self.filled < WORDS {
            self.words[self.filled] = self.ring.pop()?;
            self.filled += 1;
        }
        self.filled = 0;
        Some(JournalEntry::of(self.words))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(number: u64) -> JournalEntry {
        JournalEntry {
            arrived_ns: number,
            class: number as u16,
            cpu_ns: 2 * number,
            sojourn_ns: 3 * number,
        }
    }

    fn drained(journal: &mut Journal) -> Vec<JournalEntry> {
        let mut entries = Vec::new();
        journal.drain(|entry| entries.push(entry));
        entries
    }

    #[test]
    fn what_does_not_fit_is_counted_and_whole_entries_are_read() {
        let (mut journal, mut writers) = Journal::new(2, 5);
        for number in 0..7 {
            writers[0].write(entry(number));
        }
        writers[1].write(entry(100));
        // 15 words are rounded up to 16, which hold five entries.
        let expected: Vec<JournalEntry> = (0..5).chain([100]).map(entry).collect();
        assert_eq!(drained(&mut journal), expected);
        assert_eq!(journal.dropped(), 2);
        // One word past the end of the ring, an entry lies on both sides of it.
        for number in 7..12 {
            writers[0].write(entry(number));
        }
        assert_eq!(
            drained(&mut journal),
            (7..12).map(entry).collect::<Vec<_>>()
        );
        assert_eq!(journal.dropped(), 2);
    }

    #[test]
    fn times_beyond_a_word_saturate() {
        let longest = JournalEntry {
            arrived_ns: u64::MAX,
            class: u16::MAX,
            cpu_ns: u64::MAX,
            sojourn_ns: u64::MAX,
        };
        let read = JournalEntry::of(longest.words());
        assert_eq!((read.class, read.cpu_ns), (u16::MAX, TIME_MAX));
        assert_eq!(read.sojourn_ns, SOJOURN_MAX);
    }
}
