//! The control plane: when to change the tables, and into what (Pallas § 4.3, § 4.4).

use super::{
    ControlRules, Demand, DemandReading, DemandSample, Drift, Duty, Grouping, LaidOutTables,
    Objective, Part, RackLayout, ServerId, Shaper, Switch, TieredLayout, provision,
};
use crate::{BitSet, ClassHint, ClassId};
use alloc::vec;
use alloc::vec::Vec;

/// Watches the demand and lays the rack out for it.
///
/// ```
/// use headway_policy::ClassHint;
/// use headway_policy::rack::{ControlPlane, ControlRules};
///
/// let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
/// let types = [hint(10_000.0, 0.9), hint(100_000.0, 0.1)];
/// let mut control = ControlPlane::new(&[10; 8], &types, ControlRules::default());
/// // Nothing is laid out before an engine has scored the candidates (lower is better) and one is chosen.
/// assert_eq!(control.candidates().len(), 2);
/// control.choose(&[300.0, 120.0]);
/// assert_eq!(control.layout().of_group(0), 38);
/// ```
#[derive(Clone, Debug)]
pub struct ControlPlane {
    rules: ControlRules,
    pub(super) demand: Demand,
    pub(super) grouping: Grouping,
    pub(super) layout: RackLayout,
    /// The same by racks, behind a core switch.
    pub(super) tiers: Option<TieredLayout>,
    pub(super) candidates: Vec<Grouping>,
    /// The demand that the candidates were made for.
    pub(super) planned_for: Demand,
    /// What was counted since the last look that had enough requests.
    sample: DemandSample,
    /// Groups that there were not cores enough for; 0: there were.
    unmet_groups: usize,
    /// CPU time that arrived per ns in the last interval: cores' worth of work.
    offered_cores: f64,
    pub(super) revisions: u64,
}

impl ControlPlane {
    /// For servers of so many cores and types as declared: the first policy is generated offline (§ 4.2). All types
    /// are one group until [`Self::choose`].
    ///
    /// # Panics
    /// Without a type, or a core.
    #[must_use]
    pub fn new(cores: &[usize], types: &[ClassHint], rules: ControlRules) -> Self {
        assert!(!types.is_empty(), "there is a type");
        let grouping = Grouping::one(types.len());
        let layout = RackLayout::new(cores, 1).updated(&[cores.iter().sum()], &[None]);
        let mut control = Self {
            rules,
            demand: Demand::declared(types),
            planned_for: Demand::declared(types),
            grouping,
            layout,
            tiers: None,
            candidates: Vec::new(),
            sample: DemandSample::default(),
            unmet_groups: 0,
            offered_cores: 0.0,
            revisions: 0,
        };
        control.generate();
        control
    }

    /// The same for servers that stand in so many equal racks behind a core switch: cores are given rack by rack, then server by server.
    ///
    /// # Panics
    /// When the servers cannot be divided among so many racks.
    #[must_use]
    pub fn behind_core_switch(mut self, racks: usize) -> Self {
        let cores: Vec<_> = (0..self.layout.servers())
            .map(|server| self.layout.capacity(server))
            .collect();
        let tiers = TieredLayout::new(&cores, racks).updated(&[self.layout.total()], &[None]);
        self.layout = tiers.flat();
        self.tiers = Some(tiers);
        self
    }

    /// The plane of the first rack alone, with the candidates and the demand of all: what holds for it holds for the others. Itself without
    /// several racks.
    #[must_use]
    pub fn of_one_rack(&self) -> Self {
        let mut one = self.clone();
        if let Some(tiers) = one.tiers.take() {
            one.layout = tiers.rack(0).clone();
        }
        one
    }

    /// The time between two looks at the registers, ns.
    #[must_use]
    pub fn interval_ns(&self) -> u64 {
        self.rules.interval_ns
    }

    /// When the tables are changed, and by what measure.
    #[must_use]
    pub fn rules(&self) -> &ControlRules {
        &self.rules
    }

    /// What candidates are to be compared by.
    #[must_use]
    pub fn objective(&self) -> Objective {
        self.rules.objective
    }

    /// The time for scoring the candidates, ns; 0 without a limit.
    #[must_use]
    pub fn plan_ns(&self) -> u64 {
        self.rules.plan_ns
    }

    /// Reads and resets the registers at the end of an interval. `true`: the demand has moved, [`Self::candidates`] are to
    /// be scored and one to be chosen. While candidates wait for their scores, the demand is measured and no planning begins.
    pub fn observe(&mut self, shaper: &mut Shaper) -> bool {
        let monitor = shaper.monitor();
        let begins = self.measured(monitor.readings(), self.rules.interval_ns);
        monitor.reset();
        begins
    }

    /// The same for readings of the last `elapsed_ns`, where the registers are not at hand.
    ///
    /// # Panics
    /// When `elapsed_ns` is 0.
    pub fn measured(&mut self, readings: &[DemandReading], elapsed_ns: u64) -> bool {
        assert!(elapsed_ns > 0, "counts are of a time");
        let unmet = self.unmet_groups > 0 && self.unmet_groups <= self.layout.total();
        self.sample.add(readings, elapsed_ns);
        let requests = self.sample.requests();
        let enough = requests >= self.rules.samples.max(1);
        if enough {
            self.demand
                .measure(self.sample.readings(), 2 * self.rules.samples);
            let elapsed_ns = self.sample.elapsed_ns();
            self.offered_cores = requests as f64 * self.demand.mean_ns() / elapsed_ns as f64;
        }
        if enough || self.rules.samples == 0 {
            self.sample.clear();
        }
        let moved = enough && self.discrepancy_cores() > self.rules.delta.of(self.layout.total());
        let begins = self.candidates.is_empty() && (moved || unmet);
        if begins {
            self.generate();
        }
        begins
    }

    /// Offers candidates for the demand as it is, whatever the discrepancy. `false`: earlier candidates still wait for their scores.
    pub fn plan_anew(&mut self) -> bool {
        let begins = self.candidates.is_empty();
        if begins {
            self.generate();
        }
        begins
    }

    /// Nobody scores the candidates any more: nothing is left to be chosen. Whether something was.
    pub fn abandon_planning(&mut self) -> bool {
        let planned = !self.candidates.is_empty();
        self.candidates.clear();
        planned
    }

    /// How far the demand has moved, in cores, by [`ControlRules::drift`]: `Σ |R_g − D_g·R_total|` over groups, or
    /// `Σ |D_r − D_r'|·R_total` over types, `D'` being the demand of the last planning.
    #[must_use]
    pub fn discrepancy_cores(&self) -> f64 {
        if self.rules.drift == Drift::Types {
            self.drift_of_types()
        } else {
            self.drift_of_groups()
        }
    }

    fn drift_of_groups(&self) -> f64 {
        let total = self.layout.total() as f64;
        (0..self.grouping.groups())
            .map(|group: usize| {
                let needed = self.demand.of_types(self.grouping.members(group)) * total;
                let difference = self.layout.of_group(group) as f64 - needed;
                difference.max(-difference)
            })
            .sum()
    }

    fn drift_of_types(&self) -> f64 {
        let moved: f64 = (0..self.demand.types().len())
            .map(|class: usize| {
                let difference = self.demand.of_type(class) - self.planned_for.of_type(class);
                difference.max(-difference)
            })
            .sum();
        moved * self.layout.total() as f64
    }

    fn generate(&mut self) {
        let most = self.layout.total();
        let likeness = self.rules.likeness;
        Grouping::candidates(&self.demand, most, likeness, &mut self.candidates);
        self.unmet_groups = 0;
        self.planned_for.clone_from(&self.demand);
    }

    /// Groupings to be scored, fewest groups first. Empty when nothing is to be chosen.
    #[must_use]
    pub fn candidates(&self) -> &[Grouping] {
        &self.candidates
    }

    /// What was measured last, or declared. Candidates are to be scored under the demand of the moment when they were made.
    #[must_use]
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Offered load in the last interval as a fraction of all cores; 0 before the first.
    #[must_use]
    pub fn load(&self) -> f64 {
        self.offered_cores / self.layout.total().max(1) as f64
    }

    /// Takes the candidate with the lowest score, the fewest groups among equals, and lays the rack out for it and for the
    /// demand that it was made for. Install the result with [`Self::install`] and tell the servers that [`Self::duty`] changed.
    ///
    /// # Panics
    /// When there are not as many scores as candidates.
    pub fn choose(&mut self, scores: &[f64]) {
        assert_eq!(scores.len(), self.candidates.len(), "one score a candidate");
        let Some(best) = (0..scores.len()).reduce(|best: usize, other: usize| {
            if scores[other] < scores[best] {
                other
            } else {
                best
            }
        }) else {
            return;
        };
        let grouping = self.candidates.swap_remove(best);
        let planned_for = self.planned_for.clone();
        self.adopt_for(grouping, &planned_for);
    }

    /// Lays the rack out for a grouping and the present demand; nothing is left to be chosen.
    pub fn adopt(&mut self, grouping: Grouping) {
        let demand = self.demand.clone();
        self.adopt_for(grouping, &demand);
    }

    fn adopt_for(&mut self, grouping: Grouping, demand: &Demand) {
        self.candidates.clear();
        self.revisions += 1;
        // Servers may have lost cores since the candidates were made.
        let grouping = if grouping.groups() > self.layout.total() {
            self.unmet_groups = grouping.groups();
            Grouping::one(demand.types().len())
        } else {
            grouping
        };
        let from = self.heirs(&grouping, demand);
        self.lay_out(&grouping, demand, &from);
        self.grouping = grouping;
    }

    /// A server reported how many cores it has: the same groups, laid out anew.
    pub fn capacity(&mut self, server: ServerId, cores: usize) {
        self.layout.resize(server, cores);
        if let Some(tiers) = &mut self.tiers {
            tiers.resize(server, cores);
        }
        let groups = self.grouping.groups();
        if self.layout.total() < groups {
            self.unmet_groups = self.unmet_groups.max(groups);
            self.grouping = Grouping::one(self.demand.types().len());
        }
        let from: Vec<_> = (0..self.grouping.groups()).map(Some).collect();
        let (grouping, demand) = (self.grouping.clone(), self.demand.clone());
        self.lay_out(&grouping, &demand, &from);
        self.revisions += 1;
    }

    fn lay_out(&mut self, grouping: &Grouping, demand: &Demand, from: &[Option<usize>]) {
        let demands: Vec<f64> = (0..grouping.groups())
            .map(|group| demand.of_types(grouping.members(group)))
            .collect();
        let mut totals = Vec::new();
        match self.layout.total() {
            0 => totals.resize(demands.len(), 0),
            cores => provision(&demands, cores, &mut totals),
        }
        self.layout = match &mut self.tiers {
            Some(tiers) => {
                *tiers = tiers.updated(&totals, from);
                tiers.flat()
            }
            None => self.layout.updated(&totals, from),
        };
    }

    /// For each new group the present one with which it shares the most demand: whose servers it may keep.
    fn heirs(&self, grouping: &Grouping, demand: &Demand) -> Vec<Option<usize>> {
        let mut from = vec![None; grouping.groups()];
        for (group, heir) in from.iter_mut().enumerate() {
            let mut shared = vec![0.0; self.grouping.groups()];
            for class in grouping.members(group) {
                shared[self.grouping.of(class)] += demand.of_type(class);
            }
            *heir = (0..shared.len()).reduce(|best: usize, other: usize| {
                if shared[other] > shared[best] {
                    other
                } else {
                    best
                }
            });
        }
        from
    }

    /// Writes the switch's tables.
    pub fn install(&self, switch: &mut impl Switch) {
        switch.install(&LaidOutTables {
            grouping: &self.grouping,
            layout: &self.layout,
            tiers: self.tiers.as_ref(),
            demand: &self.demand,
        });
    }

    /// Which types are served together now.
    #[must_use]
    pub fn grouping(&self) -> &Grouping {
        &self.grouping
    }

    /// Which cores are whose now.
    #[must_use]
    pub fn layout(&self) -> &RackLayout {
        &self.layout
    }

    /// How often the layout was made anew.
    #[must_use]
    pub fn revisions(&self) -> u64 {
        self.revisions
    }

    /// A server's role now.
    #[must_use]
    pub fn duty(&self, server: ServerId) -> Duty {
        Duty {
            parts: (0..self.grouping.groups())
                .filter(|&group: &usize| self.layout.cores(server.index(), group) > 0)
                .map(|group: usize| Part {
                    classes: self.members(group),
                    cores: self.layout.cores(server.index(), group),
                })
                .collect(),
            ascending: self.ascending(),
        }
    }

    /// All types by execution time as last measured, ties in the order of declaration, UNKNOWN last.
    fn ascending(&self) -> Vec<ClassId> {
        let types = self.demand.types();
        let mut order: Vec<ClassId> = (0..types.len() as u16).map(ClassId).collect();
        order.sort_by(|a, b| {
            types[a.index()]
                .mean_ns
                .total_cmp(&types[b.index()].mean_ns)
        });
        order.push(ClassId(types.len() as u16));
        order
    }

    /// The group's types, UNKNOWN among those of the longest.
    fn members(&self, group: usize) -> BitSet {
        let types = self.demand.types().len();
        (0..=types)
            .filter(|&class| self.grouping.of(class) == group)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rack::{Cloning, Mark, Packet, Reply, Turns};

    fn hint(us: f64, share: f64) -> ClassHint {
        ClassHint::new(us * 1e3, share)
    }

    fn bimodal(short_share: f64) -> (ControlPlane, Shaper) {
        let types = [hint(10.0, short_share), hint(100.0, 1.0 - short_share)];
        let mut control = ControlPlane::new(&[10; 8], &types, ControlRules::default());
        control.choose(&[2.0, 1.0]);
        let mut shaper = Shaper::new(2, 80, Turns::Even, Cloning::Off, 64);
        control.install(&mut shaper);
        (control, shaper)
    }

    /// An interval of so many requests of each class, each answered.
    fn traffic(shaper: &mut Shaper, short: u32, long: u32) {
        for (class, count, execution_ns) in [(0, short, 10_000), (1, long, 100_000)] {
            for index in 0..count {
                let class = ClassId(class);
                shaper.request(0, Packet::new(class, index));
                let (server, mark) = (ServerId(0), Mark::Plain);
                shaper.reply(&Reply {
                    server,
                    class,
                    index,
                    mark,
                    execution_ns,
                    queue: 0,
                });
            }
        }
    }

    #[test]
    fn a_steady_workload_is_left_alone() {
        let (mut control, mut shaper) = bimodal(0.9);
        traffic(&mut shaper, 9_000, 1_000);
        assert!(!control.observe(&mut shaper));
        assert!(control.discrepancy_cores() < 1.0);
        // 190 ms of work in 10 ms on 80 cores.
        assert!((control.load() - 19.0 / 80.0).abs() < 1e-3);
        assert!(
            !control.observe(&mut shaper),
            "an empty interval says nothing"
        );
    }

    #[test]
    fn from_port_to_normal_the_shorts_get_31_cores_more_and_five_servers_keep_their_role() {
        let (mut control, mut shaper) = bimodal(0.5);
        assert_eq!(control.layout().of_group(0), 7);
        let before: Vec<Duty> = (0..8)
            .map(|server| control.duty(ServerId(server)))
            .collect();
        traffic(&mut shaper, 9_000, 1_000);
        assert!(control.observe(&mut shaper));
        assert_eq!(control.candidates().len(), 2);
        control.choose(&[2.0, 1.0]);
        assert_eq!(control.layout().of_group(0), 38);
        let kept = (0..8).filter(|&server| control.duty(ServerId(server as u16)) == before[server]);
        // 7 + 73 was seven servers of longs and a mixed one; 38 + 42 is four, three of shorts and a mixed one.
        assert_eq!(kept.count(), 4);
        assert_eq!(control.layout().mixed(), 1);
    }

    /// One group has all cores, whatever comes: only its types tell that the demand has moved.
    #[test]
    fn a_single_group_is_left_when_its_types_need_something_else() {
        let begins = |drift: Drift| {
            let types = [hint(10.0, 0.5), hint(100.0, 0.5)];
            let rules = ControlRules {
                drift,
                ..ControlRules::default()
            };
            let mut control = ControlPlane::new(&[10; 8], &types, rules);
            control.choose(&[1.0, 2.0]);
            assert_eq!(control.grouping().groups(), 1);
            let mut shaper = Shaper::new(2, 80, Turns::Even, Cloning::Off, 64);
            control.install(&mut shaper);
            traffic(&mut shaper, 5_000, 5_000);
            let steady = control.observe(&mut shaper);
            traffic(&mut shaper, 9_000, 1_000);
            [steady, control.observe(&mut shaper)]
        };
        assert_eq!(begins(Drift::Types), [false, true]);
        assert_eq!(begins(Drift::Groups), [false, false]);
    }

    /// The layout is the one computed when planning began; what moved meanwhile is for the next planning.
    #[test]
    fn one_planning_at_a_time_and_for_the_demand_with_which_it_began() {
        let (mut control, mut shaper) = bimodal(0.5);
        traffic(&mut shaper, 9_000, 1_000);
        assert!(control.observe(&mut shaper));
        traffic(&mut shaper, 9_900, 100);
        assert!(!control.observe(&mut shaper), "scores are still awaited");
        control.choose(&[2.0, 1.0]);
        assert_eq!(control.layout().of_group(0), 38);
        traffic(&mut shaper, 9_900, 100);
        assert!(control.observe(&mut shaper));
        control.choose(&[2.0, 1.0]);
        assert_eq!(control.layout().of_group(0), 73);
    }

    #[test]
    fn cores_lost_during_planning_are_not_laid_out() {
        let (mut control, mut shaper) = bimodal(0.5);
        traffic(&mut shaper, 9_000, 1_000);
        assert!(control.observe(&mut shaper));
        (1..8).for_each(|server| control.capacity(ServerId(server), 0));
        control.capacity(ServerId(0), 1);
        control.choose(&[2.0, 1.0]);
        assert_eq!(
            (control.layout().total(), control.grouping().groups()),
            (1, 1)
        );
    }

    /// With fewer cores than groups there is one group, until there are cores enough again.
    #[test]
    fn cores_that_come_back_have_their_groups_planned_anew() {
        let (mut control, mut shaper) = bimodal(0.5);
        assert_eq!(control.grouping().groups(), 2);
        (1..8).for_each(|server| control.capacity(ServerId(server), 0));
        control.capacity(ServerId(0), 1);
        assert_eq!(control.grouping().groups(), 1);
        assert!(!control.observe(&mut shaper));
        (0..8).for_each(|server| control.capacity(ServerId(server), 10));
        assert!(control.observe(&mut shaper), "without a request, too");
        control.choose(&[2.0, 1.0]);
        assert_eq!(control.grouping().groups(), 2);
        assert!(!control.observe(&mut shaper), "once is enough");
    }

    #[test]
    fn a_duty_lists_the_types_by_what_was_measured() {
        let (mut control, mut shaper) = bimodal(0.5);
        let ascending = |control: &ControlPlane| control.duty(ServerId(0)).ascending;
        let unknown = ClassId(2);
        assert_eq!(ascending(&control), [ClassId(0), ClassId(1), unknown]);
        for (class, execution_ns) in [(0, 90_000), (1, 9_000)] {
            let class = ClassId(class);
            for index in 0..1_000 {
                shaper.request(0, Packet::new(class, index));
                let (server, mark) = (ServerId(0), Mark::Plain);
                let reply = Reply {
                    server,
                    class,
                    index,
                    mark,
                    execution_ns,
                    queue: 0,
                };
                shaper.reply(&reply);
            }
        }
        control.observe(&mut shaper);
        assert_eq!(ascending(&control), [ClassId(1), ClassId(0), unknown]);
    }

    #[test]
    fn a_group_that_is_split_leaves_its_servers_to_its_parts() {
        let types = [hint(5.0, 0.4), hint(6.0, 0.3), hint(100.0, 0.3)];
        let mut control = ControlPlane::new(&[10; 4], &types, ControlRules::default());
        control.choose(&[9.0, 1.0, 9.0]);
        assert_eq!(control.grouping().groups(), 2);
        let longs = (0..4)
            .filter(|&server| control.layout().sole(server) == Some(1))
            .count();
        let split = Grouping::new(&[0, 1, 2], control.demand());
        control.adopt(split);
        let still = (0..4)
            .filter(|&server| control.layout().sole(server) == Some(2))
            .count();
        assert_eq!(still, longs);
    }

    #[test]
    fn a_server_that_shrinks_gives_up_its_part_only() {
        let (mut control, _) = bimodal(0.9);
        control.capacity(ServerId(0), 5);
        assert_eq!(control.layout().total(), 75);
        assert_eq!(control.layout().of_group(0), 36);
        control.capacity(ServerId(0), 0);
        assert!(control.duty(ServerId(0)).parts.is_empty());
    }
}
