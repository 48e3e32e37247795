//! What each type needs of the rack (Pallas § 4.3, Equation 1).

use super::DemandReading;
use crate::ClassHint;
use alloc::vec::Vec;

/// Mean execution time and share of each type.
#[derive(Clone, PartialEq, Debug)]
pub struct Demand {
    types: Vec<ClassHint>,
}

impl Demand {
    /// As declared.
    #[must_use]
    pub fn declared(types: &[ClassHint]) -> Self {
        Self {
            types: types.to_vec(),
        }
    }

    /// As measured over an interval; a type that was not seen keeps the execution time that it had. `false`, and nothing
    /// changes, when there was no request at all.
    pub fn measure(&mut self, readings: &[DemandReading]) -> bool {
        let total: u64 = readings
            .iter()
            .take(self.types.len())
            .map(|r| r.count)
            .sum();
        if total == 0 {
            return false;
        }
        for (hint, reading) in self.types.iter_mut().zip(readings) {
            hint.share = reading.count as f64 / total as f64;
            if reading.execution_ns > 0 {
                hint.mean_ns = reading.execution_ns as f64;
            }
        }
        true
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
