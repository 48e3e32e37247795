//! The worker's own queue, in order.

use crate::role::{Local, Next, Queues};

/// First come, first served from the own queue. Under a dispatcher that hands out one request at
/// a time this is "run what you are given"; under hashed steering it is d-FCFS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Fifo;

impl Local for Fifo {
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
}
