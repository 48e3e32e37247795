//! A pool of rayon's: one spawn a request.
//!
//! Every worker runs a feeder, which spawns the requests that are due and then lets its thread run one, its own or a stolen one. So
//! feeders take no core from the requests.

use crate::cores::Cores;
use crate::schedule::Schedule;
use anyhow::Result;
use rayon::ThreadPoolBuilder;

pub(crate) fn play(schedule: &'static Schedule, cores: &Cores) -> Result<()> {
    let workers = cores.clone();
    let pool = ThreadPoolBuilder::new()
        .num_threads(cores.workers())
        .start_handler(move |worker| workers.pin(worker))
        .build()?;
    schedule.start();
    pool.broadcast(|_| feed(schedule));
    schedule.wait_until_answered()
}

/// In the order of arrival: without `_fifo` a worker runs its newest request first.
fn feed(schedule: &'static Schedule) {
    while !schedule.is_taken() {
        while let Some(index) = schedule.claim_due() {
            rayon::spawn_fifo(move || schedule.serve(index));
        }
        rayon::yield_now();
    }
}
