//! Which cores belong to which group where servers stand in several racks: provisioning level by level.
//!
//! A group takes whole racks first, as it takes whole servers within a rack (Pallas § 4.3): a rack is a large server to the core switch.
//! The paper leaves several racks to future work (§ 7).

use super::{RackLayout, ServerId};
use alloc::vec::Vec;

/// The layout of racks, and that of each rack's servers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TieredLayout {
    racks: RackLayout,
    servers: Vec<RackLayout>,
}

impl TieredLayout {
    /// Racks of equally many servers, which have so many cores each: nobody's yet.
    ///
    /// # Panics
    /// When the servers cannot be divided among so many racks.
    #[must_use]
    pub fn new(cores: &[usize], racks: usize) -> Self {
        assert!(
            racks > 0 && cores.len().is_multiple_of(racks),
            "{} servers do not stand in {racks} equal racks",
            cores.len()
        );
        let servers: Vec<_> = cores
            .chunks(cores.len() / racks)
            .map(|cores| RackLayout::new(cores, 1))
            .collect();
        let totals: Vec<_> = servers.iter().map(RackLayout::total).collect();
        Self {
            racks: RackLayout::new(&totals, 1),
            servers,
        }
    }

    /// The layout that gives group `g` so many cores as `totals[g]`, changed as little as possible from this one, where it was called `from[g]`.
    ///
    /// # Panics
    /// When the totals do not sum to all cores.
    #[must_use]
    pub fn updated(&self, totals: &[usize], from: &[Option<usize>]) -> Self {
        let racks = self.racks.updated(totals, from);
        let servers = self.servers.iter().enumerate().map(|(rack, before)| {
            let own: Vec<_> = (0..totals.len())
                .map(|group| racks.cores(rack, group))
                .collect();
            before.updated(&own, from)
        });
        Self {
            servers: servers.collect(),
            racks,
        }
    }

    /// A server, counted over all racks, has so many cores from the next update on.
    pub fn resize(&mut self, server: ServerId, cores: usize) {
        let rack = server.index() / self.servers_of_a_rack();
        let own = server.index() % self.servers_of_a_rack();
        self.servers[rack].resize(ServerId(own as u16), cores);
        let total = self.servers[rack].total();
        self.racks.resize(ServerId(rack as u16), total);
    }

    /// Racks as servers: what the core switch's tables are made of.
    #[must_use]
    pub fn racks(&self) -> &RackLayout {
        &self.racks
    }

    /// The servers of a rack.
    ///
    /// # Panics
    /// When there is no such rack.
    #[must_use]
    pub fn rack(&self, rack: usize) -> &RackLayout {
        &self.servers[rack]
    }

    /// Servers of each rack.
    #[must_use]
    pub fn servers_of_a_rack(&self) -> usize {
        self.servers[0].servers()
    }

    /// All servers, rack by rack.
    #[must_use]
    pub fn flat(&self) -> RackLayout {
        RackLayout::joined(&self.servers)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_core_is_someones_at_both_levels(
            racks in 1usize..5, servers in 1usize..5, cores in 1usize..9, cuts in prop::collection::vec(0.0f64..1.0, 3),
        ) {
            let total = racks * servers * cores;
            let mut marks: Vec<_> = cuts.iter().map(|cut| (cut * total as f64) as usize).collect();
            marks.sort_unstable();
            let totals = [marks[0], marks[1] - marks[0], marks[2] - marks[1], total - marks[2]];
            let empty = TieredLayout::new(&vec![cores; racks * servers], racks);
            let layout = empty.updated(&totals, &[None; 4]);
            let flat = layout.flat();
            prop_assert_eq!(flat.servers(), racks * servers);
            for (group, &cores) in totals.iter().enumerate() {
                prop_assert_eq!(flat.of_group(group), cores);
                prop_assert_eq!(layout.racks().of_group(group), cores);
                for rack in 0..racks {
                    prop_assert_eq!(layout.rack(rack).of_group(group), layout.racks().cores(rack, group));
                }
            }
            // At most one rack fewer than there are groups serves more than one of them.
            prop_assert!(layout.racks().mixed() < totals.len());
            let same: Vec<_> = (0..4).map(Some).collect();
            prop_assert_eq!(&layout.updated(&totals, &same), &layout);
        }
    }

    #[test]
    fn a_server_that_loses_cores_shrinks_its_rack() {
        let mut layout = TieredLayout::new(&[8; 6], 3).updated(&[16, 32], &[None, None]);
        layout.resize(ServerId(3), 2);
        let after = layout.updated(&[16, 26], &[Some(0), Some(1)]);
        assert_eq!(after.racks().capacity(1), 10);
        assert_eq!(after.flat().capacity(3), 2);
        assert_eq!(
            (after.flat().of_group(0), after.flat().of_group(1)),
            (16, 26)
        );
    }
}
