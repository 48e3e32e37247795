//! Which cores of which server belong to which group (Pallas § 4.3, § 4.4).
//!
//! A group takes whole servers while it needs that much; what is left of the groups is gathered on the servers that are
//! left. Each remainder is smaller than every server left, hence at most groups − 1 servers serve more than one group. An
//! update keeps roles: a server that was one group's stays so while the group still needs a whole server, and remainders
//! stay where they were while there is room.

use super::ServerId;
use alloc::vec;
use alloc::vec::Vec;

/// A matrix of cores: servers × groups.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RackLayout {
    capacity: Vec<usize>,
    groups: usize,
    /// Server-major; `groups` columns are in use.
    cores: Vec<u16>,
}

impl RackLayout {
    /// Servers of so many cores each, nobody's yet; room for `most` groups.
    #[must_use]
    pub fn new(capacity: &[usize], most: usize) -> Self {
        Self {
            capacity: capacity.to_vec(),
            groups: most,
            cores: vec![0; capacity.len() * most],
        }
    }

    /// The layout in which each server has so many cores of each of `groups` groups, and no other.
    #[must_use]
    pub fn of_cores(cores: &[Vec<u16>], groups: usize) -> Self {
        let capacity = cores
            .iter()
            .map(|of_group| of_group.iter().copied().map(usize::from).sum());
        Self {
            capacity: capacity.collect(),
            groups,
            cores: cores.concat(),
        }
    }

    /// Several racks' servers in a row, as many groups in each.
    ///
    /// # Panics
    /// Without a rack, or when they differ in their number of groups.
    #[must_use]
    pub fn joined(racks: &[Self]) -> Self {
        let groups = racks[0].groups;
        assert!(
            racks.iter().all(|rack| rack.groups == groups),
            "one grouping for all"
        );
        Self {
            capacity: racks
                .iter()
                .flat_map(|rack| rack.capacity.iter().copied())
                .collect(),
            groups,
            cores: racks
                .iter()
                .flat_map(|rack| rack.cores.iter().copied())
                .collect(),
        }
    }

    /// Servers there are, those without cores included.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.capacity.len()
    }

    /// All cores of the rack.
    #[must_use]
    pub fn total(&self) -> usize {
        self.capacity.iter().sum()
    }

    /// A server's cores.
    #[must_use]
    pub fn capacity(&self, server: usize) -> usize {
        self.capacity[server]
    }

    /// A server has so many cores from the next update on.
    pub fn resize(&mut self, server: ServerId, cores: usize) {
        self.capacity[server.index()] = cores;
    }

    /// Cores of this server that belong to this group.
    #[inline]
    #[must_use]
    pub fn cores(&self, server: usize, group: usize) -> usize {
        if group < self.groups {
            usize::from(self.cores[server * self.groups + group])
        } else {
            0
        }
    }

    /// Cores of this group on all servers.
    #[must_use]
    pub fn of_group(&self, group: usize) -> usize {
        (0..self.servers())
            .map(|server| self.cores(server, group))
            .sum()
    }

    /// The group that has the server to itself.
    #[must_use]
    pub fn sole(&self, server: usize) -> Option<usize> {
        let mut groups = (0..self.groups).filter(|&group| self.cores(server, group) > 0);
        let first = groups.next()?;
        groups.next().is_none().then_some(first)
    }

    /// Servers with cores of more than one group.
    #[must_use]
    pub fn mixed(&self) -> usize {
        (0..self.servers())
            .filter(|&server| {
                let groups = (0..self.groups).filter(|&group| self.cores(server, group) > 0);
                groups.count() > 1
            })
            .count()
    }

    /// The layout that gives group `g` so many cores as `totals[g]`, changed as little as possible from this one, where it
    /// was called `from[g]`.
    ///
    /// # Panics
    /// When the totals do not sum to all cores.
    #[must_use]
    pub fn updated(&self, totals: &[usize], from: &[Option<usize>]) -> Self {
        assert_eq!(
            totals.iter().sum::<usize>(),
            self.total(),
            "every core is someone's"
        );
        let mut update = Update {
            before: self,
            from,
            need: totals.to_vec(),
            free: self.capacity.iter().map(|&cores| cores > 0).collect(),
            after: Self::new(&self.capacity, totals.len()),
        };
        update.keep_whole_servers();
        update.take_whole_servers();
        update.keep_remainders();
        update.gather_remainders();
        update.after
    }
}

struct Update<'a> {
    before: &'a RackLayout,
    from: &'a [Option<usize>],
    need: Vec<usize>,
    /// Servers without a role yet.
    free: Vec<bool>,
    after: RackLayout,
}

impl Update<'_> {
    fn had(&self, server: usize, group: usize) -> usize {
        self.from[group].map_or(0, |old| self.before.cores(server, old))
    }

    fn give(&mut self, server: usize, group: usize, cores: usize) {
        self.after.cores[server * self.after.groups + group] += cores as u16;
        self.need[group] -= cores;
    }

    fn give_whole(&mut self, server: usize, group: usize) {
        self.give(server, group, self.before.capacity[server]);
        self.free[server] = false;
    }

    /// A server that was one group's stays so, if that still needs a whole one.
    fn keep_whole_servers(&mut self) {
        for server in 0..self.free.len() {
            let (capacity, sole) = (self.before.capacity[server], self.before.sole(server));
            let heirs = (0..self.need.len())
                .filter(|&group| sole.is_some() && self.from[group] == sole)
                .filter(|&group| self.free[server] && self.need[group] >= capacity);
            let neediest = heirs.reduce(|best, other| {
                if self.need[other] > self.need[best] {
                    other
                } else {
                    best
                }
            });
            if let Some(group) = neediest {
                self.give_whole(server, group);
            }
        }
    }

    /// Groups that still need whole servers take those where they have the most cores already.
    fn take_whole_servers(&mut self) {
        while let Some((server, group)) = self.best_whole() {
            self.give_whole(server, group);
        }
    }

    fn best_whole(&self) -> Option<(usize, usize)> {
        let pairs = (0..self.need.len()).flat_map(|group| {
            let servers = (0..self.free.len()).filter(|&server| self.free[server]);
            servers.map(move |server| (server, group))
        });
        let whole =
            pairs.filter(|&(server, group)| self.need[group] >= self.before.capacity[server]);
        whole.reduce(|best, other| {
            if self.had(other.0, other.1) > self.had(best.0, best.1) {
                other
            } else {
                best
            }
        })
    }

    /// Remainders stay where they were.
    fn keep_remainders(&mut self) {
        for server in 0..self.free.len() {
            for group in 0..self.need.len() {
                let kept = self
                    .had(server, group)
                    .min(self.need[group])
                    .min(self.room(server));
                self.give(server, group, kept);
            }
        }
    }

    /// The largest remainder goes first, so that few are split.
    fn gather_remainders(&mut self) {
        for server in 0..self.free.len() {
            while self.room(server) > 0 {
                let Some(group) = (0..self.need.len()).reduce(|best: usize, other: usize| {
                    if self.need[other] > self.need[best] {
                        other
                    } else {
                        best
                    }
                }) else {
                    return;
                };
                self.give(server, group, self.need[group].min(self.room(server)));
            }
        }
    }

    fn room(&self, server: usize) -> usize {
        let groups = self.after.groups;
        let taken: u16 = self.after.cores[server * groups..(server + 1) * groups]
            .iter()
            .sum();
        if self.free[server] {
            self.before.capacity[server] - usize::from(taken)
        } else {
            0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fresh(capacity: &[usize], totals: &[usize]) -> RackLayout {
        RackLayout::new(capacity, 1).updated(totals, &vec![None; totals.len()])
    }

    fn same(groups: usize) -> Vec<Option<usize>> {
        (0..groups).map(Some).collect()
    }

    #[test]
    fn normal_bimodal_mixes_one_of_eight_servers() {
        let layout = fresh(&[10; 8], &[38, 42]);
        let roles: Vec<_> = (0..8).map(|server| layout.sole(server)).collect();
        let (short, long) = (Some(0), Some(1));
        assert_eq!(roles, [short, short, short, long, long, long, long, None]);
        assert_eq!([layout.cores(7, 0), layout.cores(7, 1)], [8, 2]);
    }

    #[test]
    fn remainders_of_three_groups_are_gathered_on_one_server() {
        let layout = fresh(&[10; 8], &[12, 35, 33]);
        assert_eq!(layout.mixed(), 1);
    }

    #[test]
    fn a_server_lost_is_made_up_for() {
        let mut layout = fresh(&[10; 4], &[20, 20]);
        layout.resize(ServerId(0), 0);
        let after = layout.updated(&[15, 15], &same(2));
        assert_eq!((after.cores(0, 0), after.of_group(0)), (0, 15));
        assert_eq!(after.sole(1), Some(0));
        assert_eq!(after.mixed(), 1);
    }

    /// Splits `total` at points given as fractions.
    fn split(total: usize, cuts: &[f64]) -> Vec<usize> {
        let mut points: Vec<usize> = cuts
            .iter()
            .map(|cut| (cut * total as f64) as usize)
            .collect();
        points.sort_unstable();
        points.push(total);
        let mut before = 0;
        points
            .iter()
            .map(|&point| point - core::mem::replace(&mut before, point))
            .collect()
    }

    proptest! {
        /// Every core is someone's, groups have what they were given, at most groups − 1 servers are mixed, over any
        /// sequence of updates and whatever the servers' sizes.
        #[test]
        fn layouts_are_sound(
            capacity in prop::collection::vec(1usize..20, 1..12),
            updates in prop::collection::vec(prop::collection::vec(0.0f64..1.0, 0..5), 1..6),
        ) {
            let mut layout = RackLayout::new(&capacity, 1);
            for cuts in updates {
                let totals = split(layout.total(), &cuts);
                let from: Vec<_> = (0..totals.len()).map(|group| (group < layout.groups).then_some(group)).collect();
                layout = layout.updated(&totals, &from);
                for (server, &capacity) in capacity.iter().enumerate() {
                    let cores: usize = (0..totals.len()).map(|group| layout.cores(server, group)).sum();
                    prop_assert_eq!(cores, capacity);
                }
                for (group, &total) in totals.iter().enumerate() {
                    prop_assert_eq!(layout.of_group(group), total);
                }
                prop_assert!(layout.mixed() < totals.len(), "{} mixed", layout.mixed());
            }
        }

        /// Nothing moves that need not: the same totals change nothing, and of the servers a group had to itself it keeps
        /// as many as it still fills.
        #[test]
        fn updates_keep_roles(
            servers in 1usize..12, cores in 1usize..13,
            first in prop::collection::vec(0.0f64..1.0, 3), second in prop::collection::vec(0.0f64..1.0, 3),
        ) {
            let capacity = vec![cores; servers];
            let before = fresh(&capacity, &split(servers * cores, &first));
            let after = before.updated(&split(servers * cores, &second), &same(4));
            for group in 0..4 {
                let had = |layout: &RackLayout, server| layout.sole(server) == Some(group);
                let whole = (0..servers).filter(|&server| had(&before, server)).count();
                let kept = (0..servers).filter(|&server| had(&before, server) && had(&after, server)).count();
                prop_assert_eq!(kept, whole.min(after.of_group(group) / cores));
            }
            let totals: Vec<usize> = (0..4).map(|group| after.of_group(group)).collect();
            prop_assert_eq!(&after.updated(&totals, &same(4)), &after);
        }
    }
}
