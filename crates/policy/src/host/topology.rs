//! Which cores are hyper-threads of one another.

use super::ids::CoreId;
use alloc::vec::Vec;

/// The logical cores that an allocator deals out, and their pairs. The core of the allocator
/// itself is not among them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostTopology {
    siblings: Vec<Option<CoreId>>,
}

impl HostTopology {
    /// `cores` cores without hyper-threads.
    #[must_use]
    pub fn flat(cores: usize) -> Self {
        Self {
            siblings: alloc::vec![None; cores],
        }
    }

    /// `cores` hyper-threads: 0 and 1 share a physical core, 2 and 3, and so on; an odd last one
    /// has its physical core for itself.
    #[must_use]
    pub fn paired(cores: usize) -> Self {
        Self {
            siblings: (0..cores)
                .map(|core: usize| (core ^ 1 < cores).then_some(CoreId((core ^ 1) as u16)))
                .collect(),
        }
    }

    /// From a list that says of each core who shares its physical core; `None` unless the relation is
    /// symmetric and within the list.
    #[must_use]
    pub fn from_siblings(siblings: Vec<Option<CoreId>>) -> Option<Self> {
        siblings
            .iter()
            .enumerate()
            .all(|(core, sibling): (usize, &Option<CoreId>)| {
                sibling.is_none_or(|sibling| {
                    sibling.index() != core
                        && siblings.get(sibling.index()) == Some(&Some(CoreId(core as u16)))
                })
            })
            .then_some(Self { siblings })
    }

    /// How many logical cores there are.
    #[must_use]
    pub fn cores(&self) -> usize {
        self.siblings.len()
    }

    /// Who shares the core's physical core.
    ///
    /// # Panics
    /// When there is no such core.
    #[inline]
    #[must_use]
    pub fn sibling(&self, core: CoreId) -> Option<CoreId> {
        self.siblings[core.index()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_mutual_and_an_odd_core_is_alone() {
        let topology = HostTopology::paired(5);
        assert_eq!(topology.sibling(CoreId(2)), Some(CoreId(3)));
        assert_eq!(topology.sibling(CoreId(3)), Some(CoreId(2)));
        assert_eq!(topology.sibling(CoreId(4)), None);
        assert_eq!(
            HostTopology::from_siblings(topology.siblings.clone()),
            Some(topology)
        );
    }

    #[test]
    fn one_sided_pairs_are_refused() {
        let one_sided = alloc::vec![Some(CoreId(1)), None];
        let own = alloc::vec![Some(CoreId(0))];
        let outside = alloc::vec![Some(CoreId(7))];
        for siblings in [one_sided, own, outside] {
            assert_eq!(HostTopology::from_siblings(siblings), None);
        }
    }
}
