//! Perséphone's profiler (§ 3, § 4.3.3): per class the plain mean of service times and the
//! occurrence ratio over a profiling window, gathered at completions. Ours is that a window also closes by its time: at
//! 2 000 requests a second the paper's 50 000 completions are 25 s.

use crate::ClassId;
use crate::server::reservation::{Profile, Rules};
use alloc::vec;
use alloc::vec::Vec;

/// Parameters of the profiling windows and the reservation; the defaults are the paper's.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DarcRules {
    /// Grouping and spillway.
    pub reservation: Rules,
    /// Completions in a profiling window (50 000).
    pub window: u64,
    /// A window with [enough](LEAST_COMPLETIONS) completions closes after this time too, ns; never for `u64::MAX`, as in the paper.
    pub window_time_ns: u64,
    /// A class's demand must move by this much, of total demand, before a new reservation (0.10).
    pub deviation: f64,
    /// A queueing delay beyond this many mean service times calls for a check (10).
    pub delay: f64,
}

impl Default for DarcRules {
    fn default() -> Self {
        let reservation = Rules {
            delta: 2.0,
            spillway: 1,
        };
        Self {
            reservation,
            window: 50_000,
            window_time_ns: 1_000_000_000,
            deviation: 0.10,
            delay: 10.0,
        }
    }
}

/// Completions that a window which closes by its time has at least: a class of 1 % of them shows some ten times.
pub const LEAST_COMPLETIONS: u64 = 1_000;

#[derive(Clone, Copy, Default)]
struct ClassProfile {
    completions: u64,
    cpu_ns: u64,
    arrivals: u64,
}

/// Gathers one window and keeps the profile of the last one that was full.
pub struct Profiler {
    rules: DarcRules,
    tallies: Vec<ClassProfile>,
    completions: u64,
    /// When the first request of this window came. A clock's readings begin anywhere, and for hours nothing may come: neither is time in which a class brought little.
    opened_ns: Option<u64>,
    /// When the first request of this window completed.
    first_ns: u64,
    /// Some request waited too long in this window.
    delayed: bool,
    /// Waiting longer than this is too long, per class.
    patience_ns: Vec<u64>,
    mean_ns: Vec<f64>,
    share: Vec<f64>,
    /// Load the class brought in the last full window, cores, by arrivals.
    cores: Vec<f64>,
    /// Part of all demand that the plan in force assumed.
    assumed: Vec<f64>,
}

impl Profiler {
    /// Knows nothing yet of `classes` declared classes.
    #[must_use]
    pub fn new(classes: usize, rules: DarcRules) -> Self {
        Self {
            rules,
            tallies: vec![ClassProfile::default(); classes],
            completions: 0,
            opened_ns: None,
            first_ns: 0,
            delayed: false,
            patience_ns: vec![u64::MAX; classes],
            mean_ns: vec![0.0; classes],
            share: vec![0.0; classes],
            cores: vec![0.0; classes],
            assumed: vec![0.0; classes],
        }
    }

    /// Counts an arrival. UNKNOWN is not profiled.
    #[inline]
    pub fn arrived(&mut self, now_ns: u64, class: ClassId) {
        self.opened_ns.get_or_insert(now_ns);
        if let Some(tally) = self.tallies.get_mut(class.index()) {
            tally.arrivals += 1;
        }
    }

    /// Notes whether the queueing delay exceeded the target slowdown × the class's mean.
    #[inline]
    pub fn dispatched(&mut self, class: ClassId, waited_ns: u64) {
        if let Some(&patience_ns) = self.patience_ns.get(class.index()) {
            self.delayed |= waited_ns > patience_ns;
        }
    }

    /// Counts a completion; `true` when the window holds enough samples to be closed.
    #[inline]
    pub fn finished(&mut self, now_ns: u64, class: ClassId, cpu_ns: u64) -> bool {
        let Some(tally) = self.tallies.get_mut(class.index()) else {
            return false;
        };
        tally.completions += 1;
        tally.cpu_ns += cpu_ns;
        if self.completions == 0 {
            self.first_ns = now_ns;
        }
        self.completions += 1;
        self.completions >= self.rules.window || self.is_over(now_ns)
    }

    /// Whether the window closes by its time.
    #[inline]
    fn is_over(&self, now_ns: u64) -> bool {
        self.completions >= LEAST_COMPLETIONS
            && now_ns.saturating_sub(self.first_ns) >= self.rules.window_time_ns
    }

    /// Whether some request of this window waited too long.
    #[must_use]
    pub fn delayed(&self) -> bool {
        self.delayed
    }

    /// The last full window.
    #[must_use]
    pub fn profile(&self) -> Profile<'_> {
        Profile {
            mean_ns: &self.mean_ns,
            share: &self.share,
        }
    }

    /// Load a class brought in the last full window, cores.
    #[must_use]
    pub fn cores(&self, class: ClassId) -> f64 {
        self.cores[class.index()]
    }

    /// Takes a profile as given, as if a window had shown it.
    pub fn know(&mut self, mean_ns: &[f64], share: &[f64], load_cores: f64) {
        self.mean_ns.copy_from_slice(mean_ns);
        self.share.copy_from_slice(share);
        for class in 0..self.cores.len() {
            self.cores[class] = load_cores * self.profile().demand(ClassId(class as u16));
        }
        self.set_patience();
    }

    /// Turns the window into the profile and opens the next. Windows are exactly as long as the
    /// minimum: history from a quiet hour must not outvote the present.
    pub fn roll(&mut self, now_ns: u64) {
        let opened_ns = self.opened_ns.take().unwrap_or(now_ns);
        let elapsed_ns = now_ns.saturating_sub(opened_ns).max(1) as f64;
        for (class, tally) in self.tallies.iter().enumerate() {
            if tally.completions > 0 {
                self.mean_ns[class] = tally.cpu_ns as f64 / tally.completions as f64;
            }
            self.share[class] = tally.completions as f64 / self.completions as f64;
            self.cores[class] = tally.arrivals as f64 * self.mean_ns[class] / elapsed_ns;
        }
        self.tallies.fill(ClassProfile::default());
        self.completions = 0;
        self.delayed = false;
        self.set_patience();
    }

    /// Whether some class's part of the demand is off by the deviation from what was assumed
    /// (absolute, of total demand).
    #[must_use]
    pub fn deviates(&self) -> bool {
        let profile = self.profile();
        self.assumed
            .iter()
            .enumerate()
            .any(|(class, &assumed): (usize, &f64)| {
                (profile.demand(ClassId(class as u16)) - assumed).abs() >= self.rules.deviation
            })
    }

    /// The plan in force now assumes the profile.
    pub fn assume(&mut self) {
        for class in 0..self.assumed.len() {
            self.assumed[class] = self.profile().demand(ClassId(class as u16));
        }
    }

    /// Goes on by these rules. What was counted so far in this window stays.
    pub(super) fn adopt(&mut self, rules: DarcRules) {
        self.rules = rules;
        self.set_patience();
    }

    fn set_patience(&mut self) {
        for (patience_ns, mean_ns) in self.patience_ns.iter_mut().zip(&self.mean_ns) {
            *patience_ns = if *mean_ns > 0.0 {
                (self.rules.delay * mean_ns) as u64
            } else {
                u64::MAX
            };
        }
    }
}
