//! Workloads that replay a trace.

use std::sync::Arc;

use crate::empirical::Empirical;
use crate::service::ServiceDistribution;
use crate::trace::Trace;
use crate::workload::{Arrivals, Class, Workload};

impl Trace {
    /// A workload that replays this trace, with each class's recorded share and service times. With
    /// another process in `arrivals`, the workload draws from the recorded distributions instead.
    #[must_use]
    pub fn into_workload(self, name: impl Into<String>) -> Workload {
        let classes = self.observed_classes();
        let arrivals = Arrivals::Trace(Arc::new(self));
        Workload {
            name: name.into(),
            arrivals,
            classes,
            phases: Vec::new(),
        }
    }

    /// Each class, with its recorded share and service times.
    pub(crate) fn observed_classes(&self) -> Vec<Class> {
        let mut samples_ns = vec![Vec::new(); self.classes().len()];
        for record in self.records() {
            samples_ns[usize::from(record.class)].push(record.service_ns);
        }
        self.classes()
            .iter()
            .zip(samples_ns)
            .map(|(name, samples_ns): (&String, Vec<u64>)| {
                let share = samples_ns.len() as f64 / self.records().len() as f64;
                Class::new(
                    name,
                    share,
                    ServiceDistribution::Empirical(Arc::new(Empirical::from_samples(samples_ns))),
                )
            })
            .collect()
    }
}
