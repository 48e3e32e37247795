//! From a trace to a workload that can be drawn from at any rate, and how well it fits.
//!
//! Every class gets the distribution that lies nearest to its service times by the
//! Kolmogorov–Smirnov distance, if it is near enough and has their moments; else the recorded
//! times themselves. Gaps between arrivals are fitted alike. Nothing is assumed to be good: what
//! was compared, and how far it lies from what was recorded, is part of the result.

mod arrivals;
mod services;

pub use arrivals::{ArrivalFit, Doubt};
pub use services::{Candidate, ClassFit};

use crate::{Class, Trace, Workload};

/// A workload fitted to a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The workload.
    pub workload: Workload,
    /// How well each class is met, in the workload's order.
    pub classes: Vec<ClassFit>,
    /// How well the arrivals are.
    pub arrivals: ArrivalFit,
}

impl Trace {
    /// Fits a workload to the trace.
    ///
    /// ```
    /// use headway_workload::{Service, Trace};
    /// let text = "time,class,service\n0,GET,1.5\n2.5us,SCAN,635us\n7us,GET,1.5\n";
    /// let fitted = Trace::from_csv_str(text, "db.csv")?.fit("db");
    /// assert_eq!(fitted.workload.classes[0].service, Service::Constant { mean_ns: 1_500 });
    /// assert_eq!(fitted.classes[0].chosen().ks, 0.0);
    /// # Ok::<(), headway_workload::Error>(())
    /// ```
    #[must_use]
    pub fn fit(&self, name: impl Into<String>) -> Fitted {
        let mut samples = vec![Vec::new(); self.classes().len()];
        for record in self.records() {
            samples[usize::from(record.class)].push(record.service_ns);
        }
        let named = self.classes().iter().zip(samples);
        let classes: Vec<ClassFit> = named
            .map(|(name, samples)| services::fit(name, samples))
            .collect();
        let total = self.records().len() as f64;
        let class = |fit: &ClassFit| {
            let share = fit.samples as f64 / total;
            Class::new(&fit.name, share, fit.chosen().service.clone())
        };
        let arrivals = arrivals::fit(self);
        let mut workload = Workload::new(name, classes.iter().map(class).collect());
        workload.arrivals = arrivals.process.clone();
        Fitted {
            workload,
            classes,
            arrivals,
        }
    }
}

/// The Kolmogorov–Smirnov distance between a distribution function over whole numbers and the
/// samples, which are sorted: the largest difference of the two functions anywhere.
fn distance(samples: &[u64], cdf: impl Fn(u64) -> f64) -> f64 {
    let count = samples.len() as f64;
    let mut below = 0;
    let mut largest = 0.0_f64;
    for equal in samples.chunk_by(|a, b| a == b) {
        let value = equal[0];
        // Between two samples the samples' function is flat: the other one is furthest from it
        // right before the next sample.
        if let Some(before) = value.checked_sub(1) {
            largest = largest.max((cdf(before) - below as f64 / count).abs());
        }
        below += equal.len();
        largest = largest.max((cdf(value) - below as f64 / count).abs());
    }
    largest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_distance_is_the_largest_difference() {
        // Uniform on 1 to 10 against samples that miss its upper half.
        let uniform = |ns: u64| (ns as f64 / 10.0).min(1.0);
        assert!((distance(&[1, 2, 3, 4, 5], uniform) - 0.5).abs() < 1e-12);
        let even: Vec<u64> = (1..=10).collect();
        assert!(distance(&even, uniform) < 1e-12);
        // All of the mass lies before the only sample.
        assert!((distance(&[20], uniform) - 1.0).abs() < 1e-12);
    }
}
