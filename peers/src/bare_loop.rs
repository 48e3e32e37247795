//! No runtime at all: a thread per core takes the next request by an atomic counter, waits until it is due and runs it to completion.

use crate::cores::Cores;
use crate::schedule::Schedule;
use anyhow::Result;

pub(crate) fn play(schedule: &'static Schedule, cores: &Cores) -> Result<()> {
    schedule.start();
    std::thread::scope(|scope| {
        for worker in 0..cores.workers() {
            scope.spawn(move || {
                cores.pin(worker);
                while let Some(index) = schedule.claim() {
                    schedule.wait_for(index);
                    schedule.serve(index);
                }
            });
        }
    });
    schedule.wait_until_answered()
}
