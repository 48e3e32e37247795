//! Several dispatchers in one server, each feeding workers of its own (Concord § 6).
//!
//! One dispatcher becomes the bottleneck where there are many workers or short requests. Concord's
//! way out is replication: instances with a dispatcher each, on disjoint sets of cores, among which
//! the network card spreads what arrives. An instance knows nothing of the others, so a worker may
//! idle while a request waits at another's.

use super::system::System;
use crate::server::placements::Hashed;
use crate::server::role::{Ingress, Local, Monitor};
use crate::server::{Shape, WorkerId};
use alloc::vec::Vec;

/// Instances of one system side by side.
pub struct Replicas<I, L, M> {
    /// Each instance, for its own workers, which it numbers from 0. They say the parameters of the whole.
    pub instances: Vec<System<I, L, M>>,
    /// Whose workers are whose, and who gets what arrives.
    pub division: Division,
}

impl<I, L, M> Replicas<I, L, M>
where
    I: Ingress + Send + 'static,
    L: Local + Send + 'static,
    M: Monitor + Send + 'static,
{
    /// Builds an instance for each of so many dispatchers; all but the first draw from seeds of their own.
    ///
    /// # Panics
    /// When there are no dispatchers, or more than workers.
    pub(super) fn new(
        dispatchers: usize,
        shape: &Shape,
        build: impl Fn(&Shape) -> System<I, L, M>,
    ) -> Self {
        let division = Division::new(shape.workers, dispatchers);
        let instances = (0..dispatchers)
            .map(|at: usize| {
                build(&Shape {
                    workers: division.workers_of(at),
                    seed: shape.seed ^ (at as u64).rotate_left(48),
                    ..shape.clone()
                })
            })
            .collect();
        Self {
            instances,
            division,
        }
    }
}

/// Which workers are whose: instance i of n has the workers from `i · workers ÷ n` on, so that the
/// sizes of two differ by one at most.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Division {
    /// The first worker of each instance, and the number of all.
    first: Vec<u16>,
}

impl Division {
    /// # Panics
    /// When there are no instances, or more than workers.
    #[must_use]
    pub fn new(workers: usize, instances: usize) -> Self {
        assert!(
            (1..=workers).contains(&instances),
            "1 to {workers} instances, not {instances}"
        );
        let first = (0..=instances).map(|at| (at * workers / instances) as u16);
        Self {
            first: first.collect(),
        }
    }

    /// How many instances there are.
    #[must_use]
    pub fn instances(&self) -> usize {
        self.first.len() - 1
    }

    /// The first worker of an instance.
    #[must_use]
    pub fn first_of(&self, instance: usize) -> usize {
        usize::from(self.first[instance])
    }

    /// How many workers an instance has.
    #[must_use]
    pub fn workers_of(&self, instance: usize) -> usize {
        self.first_of(instance + 1) - self.first_of(instance)
    }

    /// The instance of a worker, and its number there.
    #[must_use]
    pub fn place_of(&self, worker: WorkerId) -> (usize, WorkerId) {
        let instance = self.first.partition_point(|&first| first <= worker.0) - 1;
        (instance, WorkerId(worker.0 - self.first[instance]))
    }

    /// The instance that gets a flow of this hash: that of the worker it would be steered to, so that every
    /// worker gets as much, whatever the sizes. The worker need not be there: the card does not know.
    #[inline]
    #[must_use]
    pub fn steer(&self, flow: u32) -> usize {
        let workers = u64::from(self.first[self.instances()]);
        let worker = Hashed::position(u64::from(flow), workers);
        self.place_of(WorkerId(worker as u16)).0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every worker belongs to one instance; sizes differ by one at most; flows go to workers in equal parts.
        #[test]
        fn a_division_is_even((workers, instances) in (1usize..=256).prop_flat_map(|w| (Just(w), 1..=w))) {
            let division = Division::new(workers, instances);
            prop_assert_eq!(division.instances(), instances);
            let sizes: Vec<usize> = (0..instances).map(|at| division.workers_of(at)).collect();
            prop_assert_eq!(sizes.iter().sum::<usize>(), workers);
            prop_assert!(sizes.iter().all(|&size| size == workers / instances || size == workers.div_ceil(instances)));
            for worker in 0..workers {
                let (instance, local) = division.place_of(WorkerId(worker as u16));
                prop_assert_eq!(division.first_of(instance) + local.index(), worker);
                prop_assert!(local.index() < sizes[instance]);
            }
            const FLOWS: u64 = 4096;
            let mut flows = alloc::vec![0; instances];
            for flow in 0..FLOWS {
                flows[division.steer((flow * ((1 << 32) / FLOWS)) as u32)] += 1;
            }
            for (instance, &got) in flows.iter().enumerate() {
                let fair = FLOWS as f64 * sizes[instance] as f64 / workers as f64;
                prop_assert!((f64::from(got) - fair).abs() <= 1.0, "{got} flows, not {fair}");
            }
        }
    }
}
