//! The storage engines that were candidates, on the service's own data: `cargo bench -p headway-kv --bench engines`.
//!
//! Prints the best of several rounds, each on other keys, since what the machine takes away only ever
//! adds. The figures of two threads mean something only where two cores have nothing else to do.

use std::hint::black_box;
use std::time::{Duration, Instant};

use fjall::{Database, Keyspace, KeyspaceCreateOptions};
use headway_kv::{Kv, key_of};
use redb::{Durability, ReadableDatabase, TableDefinition};

const KEYS: u64 = 100_000;
const VALUE_BYTES: usize = 100;
const GETS: u64 = 40_000;
const PUTS: u64 = 1_000;
const SCANS: u64 = 200;
const SCAN_ENTRIES: u64 = 1_000;
const ROUNDS: u64 = 5;
const THREADS: [u64; 2] = [1, 2];

/// What is measured of an engine; each returns a byte of what it read.
trait Engine: Sync {
    fn get(&self, key: &[u8]) -> u8;
    fn scan(&self, first: &[u8], count: usize) -> u8;
    fn put(&self, key: &[u8], value: &[u8]);
}

struct Fjall {
    entries: Keyspace,
    _database: Database,
}

impl Engine for Fjall {
    fn get(&self, key: &[u8]) -> u8 {
        self.entries.get(key).unwrap().unwrap()[0]
    }

    fn scan(&self, first: &[u8], count: usize) -> u8 {
        let entries = self.entries.range(first..).take(count);
        entries.fold(0, |sum, entry| {
            let (key, value) = entry.into_inner().unwrap();
            sum ^ key[15] ^ value[0]
        })
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        self.entries.insert(key, value).unwrap();
    }
}

const TABLE: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("entries");

struct Redb(redb::Database);

impl Engine for Redb {
    fn get(&self, key: &[u8]) -> u8 {
        let transaction = self.0.begin_read().unwrap();
        let table = transaction.open_table(TABLE).unwrap();
        table.get(key).unwrap().unwrap().value()[0]
    }

    fn scan(&self, first: &[u8], count: usize) -> u8 {
        let transaction = self.0.begin_read().unwrap();
        let table = transaction.open_table(TABLE).unwrap();
        let entries = table.range(first..).unwrap().take(count);
        entries.fold(0, |sum, entry| {
            let (key, value) = entry.unwrap();
            sum ^ key.value()[15] ^ value.value()[0]
        })
    }

    fn put(&self, key: &[u8], value: &[u8]) {
        let mut transaction = self.0.begin_write().unwrap();
        // As durable as fjall's: the process may crash, the machine may not.
        transaction.set_durability(Durability::None).unwrap();
        transaction
            .open_table(TABLE)
            .unwrap()
            .insert(key, value)
            .unwrap();
        transaction.commit().unwrap();
    }
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let database = Database::builder(folder.path().join("fjall")).cache_size(256 << 20);
    let database = database.open().unwrap();
    let entries = database
        .keyspace("entries", KeyspaceCreateOptions::default)
        .unwrap();
    let fjall = Fjall {
        entries,
        _database: database,
    };
    for i in 0..KEYS {
        fjall.put(&key_of(i), &value(i));
    }
    measure("fjall, memtable", &fjall);
    fjall.entries.rotate_memtable_and_wait().unwrap();
    fjall.entries.major_compact().unwrap();
    measure("fjall, flushed", &fjall);

    let redb = redb::Builder::new()
        .set_cache_size(256 << 20)
        .create(folder.path().join("redb"));
    let redb = Redb(redb.unwrap());
    fill_redb(&redb);
    measure("redb", &redb);

    let kv = Kv::filled(KEYS, VALUE_BYTES, 1).unwrap();
    let entries = kv.calibrate_scan(Duration::from_millis(2)).unwrap();
    println!(
        "the service: GET {} ns; a SCAN of 2 ms reads {entries} entries",
        kv.measure_get().unwrap()
    );
}

/// In one transaction: with one each it would take minutes.
fn fill_redb(redb: &Redb) {
    let transaction = redb.0.begin_write().unwrap();
    let mut table = transaction.open_table(TABLE).unwrap();
    for i in 0..KEYS {
        table.insert(&key_of(i)[..], &value(i)[..]).unwrap();
    }
    drop(table);
    transaction.commit().unwrap();
}

fn measure(name: &str, engine: &impl Engine) {
    for threads in THREADS {
        let get_ns = best_ns(threads, GETS, |i| engine.get(&key_of(i)));
        let scan_ns = best_ns(threads, SCANS, |i| {
            engine.scan(&key_of(i.min(KEYS - SCAN_ENTRIES)), SCAN_ENTRIES as usize)
        });
        let entry_ns = scan_ns / SCAN_ENTRIES as f64;
        println!(
            "{name:16} {threads} thread(s): GET {get_ns:6.0} ns, SCAN {entry_ns:5.0} ns an entry"
        );
    }
    let put_ns = best_ns(1, PUTS, |i| {
        engine.put(&key_of(i), &value(i));
        0
    });
    println!("{name:16} 1 thread(s): PUT {put_ns:6.0} ns");
}

/// The time of one operation on a random key, with each thread doing `count`.
fn best_ns(threads: u64, count: u64, operation: impl Fn(u64) -> u8 + Sync) -> f64 {
    let round = |round| {
        let start = Instant::now();
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let operation = &operation;
                scope.spawn(move || {
                    let first = (round * threads + thread) * count;
                    let keys = (first..first + count).map(|i| random(i) % KEYS);
                    black_box(keys.fold(0, |sum, key| sum ^ operation(key)))
                });
            }
        });
        start.elapsed().as_nanos() as f64 / count as f64
    };
    (0..ROUNDS).map(round).fold(f64::INFINITY, f64::min)
}

fn value(i: u64) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    for (j, byte) in value.iter_mut().enumerate() {
        *byte = random(i * VALUE_BYTES as u64 + j as u64) as u8;
    }
    value
}

fn random(i: u64) -> u64 {
    let word = i.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word ^ (word >> 32)
}
