//! What it costs that a SCAN may be interrupted: `cargo bench -p headway-kv --bench scan`.
//!
//! One store, and loops that read the same entries: with one iterator throughout, and with sections that end every so many entries. The rounds
//! alternate between the loops, so the machine's other work meets all of them. Printed are the medians of the rounds, and of their ratios.

use std::hint::black_box;
use std::ops::Bound;
use std::time::Instant;

use fjall::{Database, Keyspace, KeyspaceCreateOptions, Slice};
use headway_kv::{Checksum, Kv, Request, key_of};
use headway_runtime::{NoPreempt, checkpoint};

const KEYS: u64 = 100_000;
const ENTRIES: u64 = 10_000;
const VALUE_BYTES: usize = 100;
const ROUNDS: usize = 61;

/// An iterator that lives as long as the SCAN, with a checkpoint behind each entry.
fn by_one_iterator(entries: &Keyspace, first: &[u8]) -> u64 {
    let mut checksum = Checksum::default();
    for entry in entries.range(first..).take(ENTRIES as usize) {
        let (key, value) = entry.into_inner().unwrap();
        checksum.add(&key);
        checksum.add(&value);
        checkpoint();
    }
    checksum.value()
}

/// A section and an iterator for each `length` entries, as a SCAN that is interrupted so often.
fn in_sections(entries: &Keyspace, first: &[u8], length: u64) -> u64 {
    let (mut checksum, mut last) = (Checksum::default(), None::<Slice>);
    for _ in 0..ENTRIES.div_ceil(length) {
        let section = NoPreempt::enter();
        let from = match &last {
            None => Bound::Included(first),
            Some(last) => Bound::Excluded(&**last),
        };
        let range = entries.range::<&[u8], _>((from, Bound::Unbounded));
        for entry in range.take(length as usize) {
            let (key, value) = entry.into_inner().unwrap();
            checksum.add(&key);
            checksum.add(&value);
            last = Some(key);
            black_box(section.must_yield());
        }
    }
    checksum.value()
}

/// The service's own.
fn by_the_service(kv: &Kv, first: &[u8]) -> u64 {
    let (mut body, mut room) = ([0; 64], [0; 64]);
    let count = ENTRIES as u32;
    let len = Request::Scan { first, count }.encode(&mut body).unwrap();
    let len = kv.answer(&body[..len], &mut room).unwrap();
    headway_kv::read_scan(&room[..len]).unwrap().checksum
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::builder(folder.path()).open().unwrap();
    let entries = database.keyspace("entries", KeyspaceCreateOptions::default);
    let entries = entries.unwrap();
    let kv = Kv::filled(KEYS, VALUE_BYTES, 1).unwrap();
    for i in 0..KEYS {
        entries.insert(key_of(i), [i as u8; VALUE_BYTES]).unwrap();
    }
    type Scan<'a> = Box<dyn Fn(&[u8]) -> u64 + 'a>;
    let sections = [ENTRIES, 1_000, 200, 40].map(|length| {
        let scan: Scan<'_> = Box::new({
            let entries = &entries;
            move |first| in_sections(entries, first, length)
        });
        (format!("a section for each {length} entries"), scan)
    });
    let mut scans: Vec<(String, Scan<'_>)> = vec![(
        "one iterator, a checkpoint behind each entry".into(),
        Box::new(|first| by_one_iterator(&entries, first)),
    )];
    scans.extend(sections);
    scans.push((
        "the service".into(),
        Box::new(|first| by_the_service(&kv, first)),
    ));
    let mut entry_ns = vec![Vec::new(); scans.len()];
    for round in 0..ROUNDS {
        let first = key_of((round as u64 * 7_919) % (KEYS - ENTRIES));
        for ((_, scan), times) in scans.iter().zip(&mut entry_ns) {
            let start = Instant::now();
            black_box(scan(&first));
            times.push(start.elapsed().as_nanos() as f64 / ENTRIES as f64);
        }
    }
    for ((name, _), times) in scans.iter().zip(&entry_ns) {
        let ratios = times.iter().zip(&entry_ns[0]).map(|(own, one)| own / one);
        println!(
            "{name:45} {:6.1} ns an entry, {:.3} of the first",
            median(times.clone()),
            median(ratios.collect())
        );
    }
}
