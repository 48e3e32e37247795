//! Work stealing as in ZygOS and Shenango's runtime: the own queue, then others'.

use crate::Rng;
use crate::server::role::{Local, Next, Queues, Steal, WithoutHearing, WithoutSlices};
use crate::server::{Job, WorkerId};

/// How much a thief takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum StealAmount {
    /// Half of the victim's queue, rounded up.
    #[default]
    Half,
    /// One request.
    One,
}

impl StealAmount {
    /// The most that a thief takes of so many that wait.
    #[inline]
    #[must_use]
    pub fn of(self, waiting: usize) -> usize {
        match self {
            Self::Half => waiting.div_ceil(2),
            Self::One => 1,
        }
    }
}

/// The victims of a thief in the order of [`Stealing`], for an engine that walks through them itself; `first` is drawn at random. The sibling comes twice.
#[inline]
pub fn victims(
    me: WorkerId,
    workers: usize,
    sibling: Option<WorkerId>,
    first: usize,
) -> impl Iterator<Item = WorkerId> {
    let in_turn = (first..workers)
        .chain(0..first)
        .map(|worker: usize| WorkerId(worker as u16));
    sibling
        .into_iter()
        .chain(in_turn.filter(move |&worker: &WorkerId| worker != me))
}

/// Own queue first; then that of the hyper-thread sibling, whose caches are the thief's; then every other worker's in turn from a random one on,
/// so that thieves spread over the victims (Shenango § 5).
#[derive(Clone, Debug)]
pub struct Stealing {
    take: StealAmount,
    rng: Rng,
}

impl Stealing {
    /// A worker's own state; `seed` must differ from worker to worker.
    #[must_use]
    pub fn new(take: StealAmount, seed: u64) -> Self {
        Self {
            take,
            rng: Rng::new(seed),
        }
    }

    fn steal<Q: Queues>(&mut self, queues: &mut Q) -> Steal {
        let (me, workers) = (queues.me().index(), queues.workers());
        let first = self.rng.below(workers);
        let mut outcome = Steal::Empty;
        if let Some(sibling) = queues.sibling() {
            match self.steal_from(sibling, queues) {
                Steal::Batch(count) => return Steal::Batch(count),
                tried => outcome = tried,
            }
        }
        // Two stretches of indices: a remainder for each victim would cost more than the look at its queue.
        for stretch in [first..workers, 0..first] {
            for victim in stretch {
                if victim == me {
                    continue;
                }
                match self.steal_from(WorkerId(victim as u16), queues) {
                    Steal::Batch(count) => return Steal::Batch(count),
                    Steal::Retry => outcome = Steal::Retry,
                    Steal::Empty => {}
                }
            }
        }
        outcome
    }

    #[inline]
    fn steal_from<Q: Queues>(&self, victim: WorkerId, queues: &mut Q) -> Steal {
        let waiting = queues.len(victim);
        if waiting == 0 {
            return Steal::Empty;
        }
        queues.try_steal(victim, self.take.of(waiting))
    }
}

impl Local for Stealing {
    const STEALS: bool = true;

    #[inline]
    fn next<Q: Queues>(&mut self, _now_ns: u64, queues: &mut Q) -> Next {
        if let Some(job) = queues.pop() {
            return Next::Run {
                job,
                slice_ns: None,
            };
        }
        match self.steal(queues) {
            Steal::Batch(_) => match queues.pop() {
                Some(job) => Next::Run {
                    job,
                    slice_ns: None,
                },
                None => Next::Retry,
            },
            Steal::Retry => Next::Retry,
            Steal::Empty => Next::Idle,
        }
    }

    fn yielded<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _queues: &mut Q) -> bool {
        false
    }

    fn finished<Q: Queues>(&mut self, _now_ns: u64, _job: &Job, _cpu_ns: u64, _queues: &mut Q) {}

    fn adopt(&mut self, fresh: &Self) {
        self.take = fresh.take;
    }
}

impl WithoutHearing for Stealing {}
impl WithoutSlices for Stealing {}
