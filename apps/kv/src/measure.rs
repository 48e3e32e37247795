//! What requests cost on this machine.

use std::hint::black_box;
use std::time::Duration;

use headway_machine::Clock;

use crate::workload::scatter;
use crate::{Kv, KvError, Request, key_of};

/// GETs timed together: reading the clock is a tenth of one.
const GETS_PER_SAMPLE: u64 = 64;

/// Samples of GETs; their median leaves out the interrupted ones.
const GET_SAMPLES: u64 = 101;

/// SCANs of each length; their median counts.
const SCAN_SAMPLES: u64 = 5;

impl Kv {
    /// The median time of a GET in ns, decoding and encoding included, over random keys of a filled
    /// store.
    ///
    /// # Errors
    /// [`KvError::Empty`] or [`KvError::Storage`].
    pub fn measure_get(&self) -> Result<u64, KvError> {
        let keys = self.entries()?;
        median(
            (0..GET_SAMPLES)
                .map(|sample: u64| {
                    let indices = (0..GETS_PER_SAMPLE).map(|i| sample * GETS_PER_SAMPLE + i);
                    let total_ns = self.time(indices.map(|i| (scatter(i, keys), None)))?;
                    Ok(total_ns / GETS_PER_SAMPLE)
                })
                .collect(),
        )
    }

    /// How many entries a SCAN must read to take about `target`, on a filled store.
    ///
    /// Longer and longer SCANs are timed until they take half of the target, so the last step is less
    /// than a doubling.
    ///
    /// # Errors
    /// [`KvError::TooFewEntries`] when the store is too small for it, [`KvError::Empty`] or
    /// [`KvError::Storage`].
    pub fn calibrate_scan(&self, target: Duration) -> Result<u32, KvError> {
        let found = self.entries()?;
        let target_ns = target.as_nanos().max(1) as u64;
        let mut count = found.min(64);
        loop {
            let took_ns = self.measure_scan(count as u32)?.max(1);
            let needed = (u128::from(count) * u128::from(target_ns) / u128::from(took_ns)) as u64;
            if needed <= 2 * count && needed <= found {
                return Ok(needed.max(1) as u32);
            }
            if count == found {
                let target_us = target.as_micros();
                return Err(KvError::TooFewEntries {
                    target_us,
                    needed,
                    found,
                });
            }
            count = (count * 2).min(found);
        }
    }

    /// The median time in ns of SCANs of `count` entries of a filled store.
    ///
    /// # Errors
    /// [`KvError::Empty`] or [`KvError::Storage`].
    pub fn measure_scan(&self, count: u32) -> Result<u64, KvError> {
        let starts = self.entries()?.saturating_sub(u64::from(count)) + 1;
        median(
            (0..SCAN_SAMPLES)
                .map(|i| self.time([(scatter(i, starts), Some(count))].into_iter()))
                .collect(),
        )
    }

    /// The total time of GETs, or of SCANs where a count is given, by number of key.
    fn time(&self, requests: impl Iterator<Item = (u64, Option<u32>)>) -> Result<u64, KvError> {
        let clock = Clock::global();
        let (mut body, mut room) = ([0; 64], [0; 2048]);
        let start_ns = clock.now_ns();
        for (i, count) in requests {
            let key = key_of(i);
            let request = match count {
                None => Request::Get { key: &key },
                Some(count) => Request::Scan { first: &key, count },
            };
            let len = request.encode(&mut body).expect("the buffer has room");
            let request = Request::decode(black_box(&body[..len])).expect("as encoded");
            black_box(self.execute(request)?.write(&mut room));
        }
        Ok(clock.now_ns() - start_ns)
    }

    fn entries(&self) -> Result<u64, KvError> {
        match self.store().len()? {
            0 => Err(KvError::Empty),
            entries => Ok(entries),
        }
    }
}

fn median(samples: Vec<Result<u64, KvError>>) -> Result<u64, KvError> {
    let mut samples = samples.into_iter().collect::<Result<Vec<u64>, _>>()?;
    samples.sort_unstable();
    Ok(samples[samples.len() / 2])
}
