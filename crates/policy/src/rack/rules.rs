//! When the control plane changes the tables, and by what measure (Pallas § 4.3, § 4.4).

use super::Likeness;

/// What candidates are compared by.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Objective {
    /// p99 of the slowdown over all requests. In an ideal simulation the overall p99 of the latency is that of the longest
    /// types and hardly depends on the grouping; with it TPC-C's best grouping would not be the paper's.
    #[default]
    Slowdown,
    /// p99 of the latency over all requests (the paper's words, § 4.3).
    Latency,
}

/// How far the demand has moved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Drift {
    /// By what each type needs now beside what it needed when the layout was planned. It moves neither with the rounding to whole cores, which
    /// is all that two cores have, nor without end within a single group, which has all cores whatever comes (ours).
    #[default]
    Types,
    /// By the cores of each group beside what it needs now (§ 4.4). A single group is never left again.
    Groups,
}

/// How far the demand may move before a new layout is made.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Delta {
    /// So many cores, whatever the rack has (the paper's).
    Cores(f64),
    /// This fraction of the rack's cores (ours): two cores never differ by ten.
    Share(f64),
}

impl Delta {
    /// In cores of a rack that has so many.
    #[must_use]
    pub fn of(self, total: usize) -> f64 {
        match self {
            Self::Cores(cores) => cores,
            Self::Share(share) => share * total as f64,
        }
    }
}

/// When the tables are changed, and by what measure.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ControlRules {
    /// How often the registers are read, ns.
    pub interval_ns: u64,
    /// Regenerate when the demand has moved by more than this.
    pub delta: Delta,
    /// What is compared with it.
    pub drift: Drift,
    /// What candidates are compared by.
    pub objective: Objective,
    /// What makes types alike.
    pub likeness: Likeness,
    /// Requests that a look needs to tell anything; with fewer it goes on counting. A look of less than twice as many
    /// averages its shares with those before it, so that a few do not look like another mix. 0: a look tells what its interval had (the paper's).
    pub samples: u64,
    /// Whether a group that overflows has the registers read before the interval is over (ours).
    pub sooner: bool,
    /// The time for scoring the candidates, ns. 0: as much as it needs, and in virtual time none passes.
    pub plan_ns: u64,
}

impl ControlRules {
    /// Parts of an interval between two glances at what overflows.
    const GLANCES: u64 = 8;
    /// One request in so many that overflows is much.
    const MUCH: u64 = 8;

    /// How often an engine asks [`is_due`](Self::is_due), ns.
    #[must_use]
    pub fn glance_ns(&self) -> u64 {
        if self.sooner {
            (self.interval_ns / Self::GLANCES).max(1)
        } else {
            self.interval_ns
        }
    }

    /// Whether the registers are to be read, so long after the last look and with so many requests since then, of which so many overflowed: a
    /// steady mix has a few percent of them.
    #[must_use]
    pub fn is_due(&self, elapsed_ns: u64, requests: u64, overflowed: u64) -> bool {
        let is_much = requests >= self.samples.max(1) && overflowed * Self::MUCH > requests;
        let hurries = self.sooner && elapsed_ns >= self.glance_ns() && is_much;
        elapsed_ns >= self.interval_ns || hurries
    }
}

impl Default for ControlRules {
    /// Every 10 ms, more than 10 cores, whatever the number of requests; scoring has as much time as it needs.
    fn default() -> Self {
        Self {
            interval_ns: 10_000_000,
            delta: Delta::Cores(10.0),
            drift: Drift::default(),
            objective: Objective::default(),
            likeness: Likeness::default(),
            samples: 0,
            sooner: false,
            plan_ns: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ClassHint;
    use crate::rack::{ControlPlane, DemandReading};

    #[test]
    fn what_overflows_is_looked_at_sooner() {
        let rules = ControlRules {
            sooner: true,
            samples: 100,
            ..ControlRules::default()
        };
        assert_eq!(rules.glance_ns(), 1_250_000);
        assert!(rules.is_due(1_250_000, 800, 101) && !rules.is_due(1_250_000, 800, 100));
        assert!(!rules.is_due(1_250_000, 99, 99), "too few to tell");
        assert!(!rules.is_due(1_000_000, 800, 800) && rules.is_due(10_000_000, 0, 0));
        let printed = ControlRules::default();
        assert!(!printed.is_due(9_000_000, 800, 800));
        assert_eq!(printed.glance_ns(), printed.interval_ns);
    }

    /// A control plane over two servers of one core, with types of 10 and 100 µs in a group each.
    fn plane(delta: Delta, samples: u64) -> ControlPlane {
        let rules = ControlRules {
            delta,
            samples,
            ..ControlRules::default()
        };
        let types = [ClassHint::new(1e4, 0.9), ClassHint::new(1e5, 0.1)];
        let mut control = ControlPlane::new(&[1; 2], &types, rules);
        control.choose(&[2.0, 1.0]);
        control
    }

    fn look(control: &mut ControlPlane, short: u64, long: u64) -> bool {
        let reading = |count, execution_ns| DemandReading {
            count,
            execution_ns,
        };
        control.measured(
            &[reading(short, 10_000), reading(long, 100_000)],
            10_000_000,
        )
    }

    #[test]
    fn two_cores_never_differ_by_ten() {
        for (delta, follows) in [(Delta::Cores(10.0), false), (Delta::Share(0.125), true)] {
            assert_eq!(look(&mut plane(delta, 0), 100, 900), follows, "{delta:?}");
        }
    }

    #[test]
    fn a_look_has_enough_requests() {
        let mut control = plane(Delta::Share(0.125), 500);
        for _ in 0..4 {
            assert!(!look(&mut control, 40, 60), "a hundred are too few");
        }
        assert!(look(&mut control, 40, 60), "500 are enough");
        // As many requests of before weigh as much.
        let share = control.demand().types()[0].share;
        assert!((share - 0.65).abs() < 1e-9, "{share}");
        assert!((control.load() - 500.0 * 41.5e3 / 50e6 / 2.0).abs() < 1e-3);
    }
}
