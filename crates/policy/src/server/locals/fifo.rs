//! The worker's own queue, in order.

use crate::server::Job;
use crate::server::role::{Local, Next, Queues, WithoutHearing, WithoutSlices};

/// First come, first served from the own queue. Under a dispatcher that hands out one request at
/// a time this is "run what you are given"; under hashed steering it is d-FCFS.
#[derive(Clone, Copy, Debug, Default)]
pub struct LocalFifo;

impl Local for LocalFifo {
    const STEALS: bool = false;

    #[inline]
    fn next<Q: Queues>(&mut self, _now_ns: u64, queues: &mut Q) -> Next {
        match queues.pop() {
            Some(job) => Next::Run {
                job,
                slice_ns: None,
            },
            None => Next::Idle,
        }
    }

    fn yielded<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _queues: &mut Q) -> bool {
        false
    }

    fn finished<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _cpu_ns: u64, _queues: &mut Q) {}

    fn adopt(&mut self, _fresh: &Self) {}
}

impl WithoutHearing for LocalFifo {}
impl WithoutSlices for LocalFifo {}
