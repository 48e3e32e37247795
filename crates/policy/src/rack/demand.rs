//! What each type needs of the rack (Pallas § 4.3, Equation 1).

use super::DemandReading;
use crate::ClassHint;
use alloc::vec::Vec;

/// Mean execution time and share of each type.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    types: Vec<ClassHint>,
}

/// The readings of several looks together.
#[derive(Clone, Debug, Default)]
pub struct DemandSample {
    readings: Vec<DemandReading>,
    elapsed_ns: u64,
}

impl DemandSample {
    /// Adds those of one look, over `elapsed_ns`; the newest execution times count.
    pub fn add(&mut self, readings: &[DemandReading], elapsed_ns: u64) {
        self.readings.resize(
            readings.len().max(self.readings.len()),
            DemandReading::default(),
        );
        for (sum, reading) in self.readings.iter_mut().zip(readings) {
            sum.count += reading.count;
            sum.execution_ns = reading.execution_ns;
        }
        self.elapsed_ns += elapsed_ns;
    }

    /// By type.
    #[must_use]
    pub fn readings(&self) -> &[DemandReading] {
        &self.readings
    }

    /// Requests of all types.
    #[must_use]
    pub fn requests(&self) -> u64 {
        requests_of(self.readings.iter())
    }

    /// The time of all looks, ns.
    #[must_use]
    pub fn elapsed_ns(&self) -> u64 {
        self.elapsed_ns
    }

    /// Begins anew.
    pub fn clear(&mut self) {
        self.readings
            .iter_mut()
            .for_each(|reading| reading.count = 0);
        self.elapsed_ns = 0;
    }
}

fn requests_of<'a>(readings: impl Iterator<Item = &'a DemandReading>) -> u64 {
    readings.map(|reading| reading.count).sum()
}

impl Demand {
    /// As declared.
    #[must_use]
    pub fn declared(types: &[ClassHint]) -> Self {
        Self {
            types: types.to_vec(),
        }
    }

    /// As measured; a type that was not seen keeps the execution time that it had. Shares are averaged with those before as if the requests
    /// that lack of `enough` had had these. A type that makes up less than half a request of them is not there. Nothing changes when there was no
    /// request.
    pub fn measure(&mut self, readings: &[DemandReading], enough: u64) {
        let total = requests_of(readings.iter().take(self.types.len()));
        if total == 0 {
            return;
        }
        let before = enough.saturating_sub(total) as f64;
        for (hint, reading) in self.types.iter_mut().zip(readings) {
            let share = (hint.share * before + reading.count as f64) / (before + total as f64);
            let is_gone = reading.count == 0 && share * 2.0 * before < 1.0;
            hint.share = if is_gone { 0.0 } else { share };
            if reading.execution_ns > 0 {
                hint.mean_ns = reading.execution_ns as f64;
            }
        }
    }

    /// Types, UNKNOWN not included.
    #[must_use]
    pub fn types(&self) -> &[ClassHint] {
        &self.types
    }

    /// Mean execution time of a request of the whole workload, ns: `Σ E·φ`.
    #[must_use]
    pub fn mean_ns(&self) -> f64 {
        self.types
            .iter()
            .map(|hint| hint.mean_ns * hint.share)
            .sum()
    }

    /// The type's part of all CPU time, `D_r = E_r·φ_r / Σ E·φ`.
    #[must_use]
    pub fn of_type(&self, class: usize) -> f64 {
        let (hint, total) = (self.types[class], self.mean_ns());
        if total > 0.0 {
            hint.mean_ns * hint.share / total
        } else {
            0.0
        }
    }

    /// The part of all CPU time that a group of types takes, `D_g = Σ D_r`.
    #[must_use]
    pub fn of_types(&self, classes: impl Iterator<Item = usize>) -> f64 {
        classes.map(|class| self.of_type(class)).sum()
    }

    /// Mean execution time of the requests of a group of types, ns; the plain mean over its types while none was seen.
    #[must_use]
    pub fn mean_of_types_ns(&self, classes: impl Iterator<Item = usize>) -> f64 {
        let (mut work, mut share, mut plain, mut types) = (0.0, 0.0, 0.0, 0.0);
        for class in classes {
            let hint = self.types[class];
            work += hint.mean_ns * hint.share;
            share += hint.share;
            plain += hint.mean_ns;
            types += 1.0;
        }
        if share > 0.0 {
            work / share
        } else if types > 0.0 {
            plain / types
        } else {
            0.0
        }
    }
}
