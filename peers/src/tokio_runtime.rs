//! Tokio's multi-thread runtime: one task a request.
//!
//! A feeder, a task itself, spawns the requests that are due and yields. So it takes no core from them, and an idle worker steals it like
//! any other task. A second feeder would do harm: a worker steals nothing while it has a task of its own.

use crate::cores::Cores;
use crate::schedule::Schedule;
use anyhow::Result;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::runtime::Builder;
use tokio::task::yield_now;

pub(crate) fn play(schedule: &'static Schedule, cores: &Cores) -> Result<()> {
    let (started, workers) = (AtomicUsize::new(0), cores.clone());
    let runtime = Builder::new_multi_thread()
        .worker_threads(cores.workers())
        .on_thread_start(move || workers.pin(started.fetch_add(1, Ordering::Relaxed)))
        .build()?;
    schedule.start();
    let feeder = runtime.spawn(feed(schedule));
    runtime.block_on(feeder)?;
    schedule.wait_until_answered()
}

async fn feed(schedule: &'static Schedule) {
    while !schedule.is_taken() {
        while let Some(index) = schedule.claim_due() {
            tokio::spawn(async move { schedule.serve(index) });
        }
        yield_now().await;
    }
}
