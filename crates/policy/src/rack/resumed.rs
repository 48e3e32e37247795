//! A control plane that goes on with what an earlier one left in a switch's tables.

use super::{ControlPlane, Demand, Grouping, RackLayout};
use crate::ClassHint;
use alloc::vec::Vec;

/// What a switch's tables tell of the control plane that made them.
#[derive(Clone, PartialEq, Debug)]
pub struct LastLayout {
    /// The demand that they were made for, by type.
    pub types: Vec<ClassHint>,
    /// Each type's group.
    pub group_of: Vec<u16>,
    /// Each server's cores of each group: its turns in the group's round.
    pub cores: Vec<Vec<u16>>,
}

impl ControlPlane {
    /// Takes up the groups, the layout and the demand of an earlier control plane: tables made from these are the old ones, so that no server's role
    /// changes. `false`, and nothing changes, if they are of another rack, or have no core.
    pub fn resume(&mut self, last: &LastLayout) -> bool {
        let types = self.demand.types().len();
        let grouping = Grouping::numbered(&last.group_of);
        let groups = grouping.groups();
        let fits = last.types.len() == types
            && last.group_of.len() == types
            && last.cores.len() == self.layout.servers()
            && last.cores.iter().all(|of_group| of_group.len() == groups)
            && self.tiers.is_none();
        if !fits {
            return false;
        }
        let layout = RackLayout::of_cores(&last.cores, groups);
        if (0..groups).any(|group| layout.of_group(group) == 0) {
            return false;
        }
        self.demand = Demand::declared(&last.types);
        self.planned_for.clone_from(&self.demand);
        self.candidates.clear();
        self.grouping = grouping;
        self.layout = layout;
        self.revisions += 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::{Cloning, ControlRules, ServerId, Shaper, Turns};

    fn hint(us: f64, share: f64) -> ClassHint {
        ClassHint::new(us * 1e3, share)
    }

    fn planned(types: &[ClassHint]) -> ControlPlane {
        let mut control = ControlPlane::new(&[4, 4, 4, 0], types, ControlRules::default());
        // As many groups as types.
        let scores = (0..control.candidates().len()).rev();
        control.choose(&scores.map(|score| score as f64).collect::<Vec<_>>());
        control
    }

    fn left_by(control: &ControlPlane) -> LastLayout {
        let (groups, layout) = (control.grouping().groups(), control.layout());
        let cores = |server| {
            let cores = (0..groups).map(|group: usize| layout.cores(server, group) as u16);
            cores.collect()
        };
        let types = control.demand().types();
        LastLayout {
            types: types.to_vec(),
            group_of: (0..types.len())
                .map(|class| control.grouping().of(class) as u16)
                .collect(),
            cores: (0..layout.servers()).map(cores).collect(),
        }
    }

    /// All that the tables of a switch tell.
    fn rounds(control: &ControlPlane) -> Vec<Vec<u16>> {
        let mut shaper = Shaper::new(3, 12, Turns::Even, Cloning::Off, 1);
        control.install(&mut shaper);
        let groups = 0..shaper.groups();
        groups
            .map(|group| shaper.round_of(group).to_vec())
            .collect()
    }

    #[test]
    fn tables_of_one_that_resumes_are_the_old_ones() {
        let types = [hint(5.0, 0.6), hint(100.0, 0.3), hint(1000.0, 0.1)];
        let mut before = planned(&types);
        // One server left, and the demand changed since the declaration.
        before.capacity(ServerId(1), 0);
        assert_eq!(before.grouping().groups(), 3);
        let declared = [hint(1e6, 0.0); 3];
        let mut after = planned(&declared);
        assert_ne!(rounds(&after), rounds(&before));
        assert!(after.resume(&left_by(&before)));
        assert_eq!(rounds(&after), rounds(&before));
        assert_eq!(after.demand(), before.demand());
        assert_eq!(after.layout(), before.layout());
        assert!(after.candidates().is_empty());
        assert_eq!(after.discrepancy_cores(), 0.0);
    }

    #[test]
    fn what_is_of_another_rack_is_not_taken_up() {
        let types = [hint(5.0, 0.6), hint(100.0, 0.3), hint(1000.0, 0.1)];
        let before = planned(&types);
        let last = left_by(&before);
        let mut other = planned(&types[..2]);
        assert!(!other.resume(&last));
        let mut fewer = last.clone();
        fewer.cores.pop();
        let mut same = planned(&types);
        assert!(!same.resume(&fewer));
        let mut empty = last;
        empty.cores.iter_mut().for_each(|cores| cores.fill(0));
        assert!(!same.resume(&empty));
        assert_eq!(rounds(&same), rounds(&before));
    }
}
