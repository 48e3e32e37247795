//! Congestion detection (Shenango, Algorithm 1): something that is queued at two consecutive looks has
//! waited for a whole interval, and could have run on another core meanwhile.
//!
//! How long something waits says more than how much waits, which would need a threshold tuned to the
//! length of requests (§ 4.1.1). And it costs no more: the head of now against the tail of the last look.

use super::{AppId, Counters, HostShape, HostView, Kthread, KthreadId};
use crate::BitSet;
use alloc::vec::Vec;

/// Tails of the last look.
#[derive(Clone, Copy, Default)]
struct Tails {
    run: u64,
    ingress: u64,
}

/// What was seen of every application at the last look.
#[derive(Clone)]
pub struct Congestion {
    apps: Vec<SeenTails>,
}

#[derive(Clone)]
struct SeenTails {
    kthreads: Vec<Tails>,
    shared_tail: u64,
    /// Kthreads that were made to leave work behind. Algorithm 1 looks at active kthreads only; a
    /// request put back by one that lost its core, while the others are all busy, would wait unseen.
    stranded: BitSet,
}

impl SeenTails {
    fn new(kthreads: usize) -> Self {
        Self {
            kthreads: alloc::vec![Tails::default(); kthreads],
            shared_tail: 0,
            stranded: BitSet::EMPTY,
        }
    }
}

impl Congestion {
    /// Nothing seen yet.
    #[must_use]
    pub fn new(shape: &HostShape) -> Self {
        Self {
            apps: shape
                .apps
                .iter()
                .map(|app| SeenTails::new(app.most))
                .collect(),
        }
    }

    /// Another application of `kthreads` kthreads has the slot.
    pub fn forget(&mut self, app: AppId, kthreads: usize) {
        self.apps[app.index()] = SeenTails::new(kthreads);
    }

    /// Every kthread of an application may have work from before, except those that it comes with.
    pub(super) fn doubt(&mut self, app: AppId, but: impl Fn(KthreadId) -> bool) {
        let seen = &mut self.apps[app.index()];
        let kthreads = (0..seen.kthreads.len()).map(|kthread| KthreadId(kthread as u16));
        seen.stranded = kthreads
            .filter(|&kthread| !but(kthread))
            .map(KthreadId::index)
            .collect();
    }

    /// A kthread lost its core and may have left work behind.
    pub fn stranded(&mut self, app: AppId, kthread: KthreadId) {
        self.apps[app.index()].stranded.insert(kthread.index());
    }

    /// Looks at an application whose `active` kthreads have cores: whether something waited since
    /// the last look.
    pub fn look<V: HostView>(
        &mut self,
        app: AppId,
        active: impl Iterator<Item = KthreadId>,
        view: &V,
    ) -> bool {
        let seen = &mut self.apps[app.index()];
        let shared = view.shared(app);
        let mut congested = shared.head < seen.shared_tail;
        seen.shared_tail = shared.tail;
        // One that was moved away may leave work behind long after its core was taken.
        for kthread in view.interrupted(app).iter() {
            if kthread < seen.kthreads.len() {
                seen.stranded.insert(kthread);
            }
        }
        for kthread in active {
            seen.stranded.remove(kthread.index());
            congested |= seen.kthreads[kthread.index()].look(&view.kthread(app, kthread));
        }
        for index in seen.stranded.iter() {
            let queues = view.kthread(app, KthreadId(index as u16));
            congested |= seen.kthreads[index].look(&queues);
            if is_empty(queues.run) && is_empty(queues.ingress) {
                seen.stranded.remove(index);
            }
        }
        congested
    }
}

impl Tails {
    /// Every queue is looked at, or the next look would compare with an older one.
    #[inline]
    fn look(&mut self, now: &Kthread) -> bool {
        let waited = now.run.head < self.run || now.ingress.head < self.ingress;
        *self = Self {
            run: now.run.tail,
            ingress: now.ingress.tail,
        };
        waited
    }
}

#[inline]
fn is_empty(queue: Counters) -> bool {
    queue.head == queue.tail
}

#[cfg(test)]
mod tests {
    use super::super::{AppKind, AppShape, HostTopology, Usage};
    use super::*;
    use alloc::collections::VecDeque;
    use proptest::prelude::*;

    struct SeenTails(Vec<Kthread>);

    /// The same, with a kthread that stands in the middle of something.
    struct WithInterrupted(SeenTails, usize);

    impl HostView for SeenTails {
        fn kthread(&self, _app: AppId, kthread: KthreadId) -> Kthread {
            self.0[kthread.index()]
        }
        fn shared(&self, _app: AppId) -> Counters {
            Counters::default()
        }
        fn usage(&self, _app: AppId) -> Usage {
            Usage::default()
        }
        fn interrupted(&self, _app: AppId) -> BitSet {
            BitSet::EMPTY
        }
    }

    impl HostView for WithInterrupted {
        fn kthread(&self, app: AppId, kthread: KthreadId) -> Kthread {
            self.0.kthread(app, kthread)
        }
        fn shared(&self, app: AppId) -> Counters {
            self.0.shared(app)
        }
        fn usage(&self, app: AppId) -> Usage {
            self.0.usage(app)
        }
        fn interrupted(&self, _app: AppId) -> BitSet {
            BitSet::range(self.1, self.1 + 1)
        }
    }

    fn one_app(most: usize) -> Congestion {
        let app = AppShape {
            guaranteed: 0,
            most,
            kind: AppKind::Latency,
        };
        Congestion::new(&HostShape {
            topology: HostTopology::flat(most),
            apps: alloc::vec![app],
            seed: 0,
        })
    }

    fn ingress(head: u64, tail: u64) -> Kthread {
        Kthread {
            ingress: Counters { head, tail },
            ..Kthread::default()
        }
    }

    #[test]
    fn packets_count_as_well_as_threads() {
        let mut congestion = one_app(1);
        let mut look = |queue| {
            congestion.look(
                AppId(0),
                [KthreadId(0)].into_iter(),
                &SeenTails(alloc::vec![queue]),
            )
        };
        assert!(!look(ingress(0, 1)), "new at the first look");
        assert!(look(ingress(0, 1)), "still there at the second");
        assert!(!look(ingress(1, 2)), "gone, but another came");
        assert!(
            !look(ingress(5, 9)),
            "long queues that move are not congested"
        );
    }

    #[test]
    fn what_a_revoked_kthread_left_behind_is_seen() {
        let mut congestion = one_app(2);
        let queues = SeenTails(alloc::vec![Kthread::default(), ingress(0, 1)]);
        let look = |congestion: &mut Congestion| {
            congestion.look(AppId(0), [KthreadId(0)].into_iter(), &queues)
        };
        assert!(!look(&mut congestion) && !look(&mut congestion));
        congestion.stranded(AppId(0), KthreadId(1));
        assert!(!look(&mut congestion));
        assert!(look(&mut congestion));
    }

    /// It was moved away, and its queues were empty until it got to leave.
    #[test]
    fn what_a_kthread_leaves_behind_long_after_it_lost_its_core_is_seen() {
        let mut congestion = one_app(2);
        let empty = SeenTails(alloc::vec![Kthread::default(); 2]);
        congestion.stranded(AppId(0), KthreadId(1));
        let active = || [KthreadId(0)].into_iter();
        assert!(!congestion.look(AppId(0), active(), &empty));
        let queues = SeenTails(alloc::vec![Kthread::default(), ingress(0, 1)]);
        let later = WithInterrupted(queues, 1);
        assert!(!congestion.look(AppId(0), active(), &later));
        assert!(congestion.look(AppId(0), active(), &later));
    }

    proptest! {
        /// Against queues of items that remember at which look they were first seen.
        #[test]
        fn congested_means_that_an_item_was_there_at_the_last_look(
            steps in prop::collection::vec((0usize..3, 0u64..4, 0u64..4), 1..100),
        ) {
            let mut congestion = one_app(3);
            let mut queues: [VecDeque<bool>; 3] = Default::default();
            let mut counters = [Counters::default(); 3];
            for (at, pushed, popped) in steps {
                for _ in 0..pushed {
                    queues[at].push_back(false);
                    counters[at].tail += 1;
                }
                for _ in 0..popped {
                    if queues[at].pop_front().is_some() {
                        counters[at].head += 1;
                    }
                }
                let expected = queues.iter().flatten().any(|&seen| seen);
                let view = SeenTails(counters.iter().map(|&run| Kthread { run, ..Kthread::default() }).collect());
                let all = (0..3).map(KthreadId);
                prop_assert_eq!(congestion.look(AppId(0), all, &view), expected);
                queues.iter_mut().flatten().for_each(|seen| *seen = true);
            }
        }
    }
}
