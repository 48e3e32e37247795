//! Fits a synthetic workload, drawn at any rate, to a trace, and reports the quality of the fit.
//!
//! Every class gets the distribution nearest to its service times by the Kolmogorov–Smirnov distance, if
//! it is near enough and has their moments; otherwise the recorded times themselves. Gaps between
//! arrivals are fitted alike. The result lists every candidate with its distance from the records.

mod arrivals;
mod distance;
mod services;

pub use arrivals::{ArrivalFit, Doubt};
pub use services::{ClassFit, FitCandidate};

use crate::{Class, Trace, Workload};

/// A workload fitted to a trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Fitted {
    /// The workload.
    pub workload: Workload,
    /// The fit of each class, in the workload's order.
    pub classes: Vec<ClassFit>,
    /// The fit of the arrivals.
    pub arrivals: ArrivalFit,
}

impl Trace {
    /// Why a process fitted to the arrivals may mislead.
    #[must_use]
    pub fn arrival_doubt(&self) -> Option<Doubt> {
        arrivals::fit(self).doubt
    }

    /// Fits a workload to the trace.
    ///
    /// ```
    /// use headway_workload::{ServiceDistribution, Trace};
    /// let text = "time,class,service\n0,GET,1.5\n2.5us,SCAN,635us\n7us,GET,1.5\n";
    /// let fitted = Trace::from_csv_str(text, "db.csv")?.fit("db");
    /// assert_eq!(fitted.workload.classes[0].service, ServiceDistribution::Constant { mean_ns: 1_500 });
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
        let arrivals = arrivals::fit(self);
        let mut workload = Workload::new(
            name,
            classes
                .iter()
                .map(|fit: &ClassFit| {
                    let share = fit.samples as f64 / total;
                    Class::new(&fit.name, share, fit.chosen().service.clone())
                })
                .collect(),
        );
        workload.arrivals = arrivals.process.clone();
        Fitted {
            workload,
            classes,
            arrivals,
        }
    }
}
