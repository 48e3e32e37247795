//! Policies that allot rates instead of starting and stopping: for virtual time only. No machine
//! runs a thousand requests on fourteen cores at once; what shares in small slices comes near
//! (`shinjuku-sq`, `tiny-quanta`).

use crate::spec::Description;

/// Processor sharing (Kleinrock 1967): all requests are served at once, at equal rates, none
/// faster than one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct ProcessorSharing;

impl ProcessorSharing {
    /// What it says of itself.
    pub const ABOUT: Description = Description {
        name: "ps",
        aliases: &[],
        summary: "everybody at once, at equal rates: the ideal",
        paper: "Kleinrock, 1967",
        params: &[],
    };
    /// Its name.
    pub const NAME: &'static str = Self::ABOUT.name;

    /// Service per unit of time that each of `requests` gets from `workers`, 0 to 1.
    ///
    /// # Panics
    /// When there are no requests (in builds that check).
    #[inline]
    #[must_use]
    pub fn rate(self, workers: usize, requests: usize) -> f64 {
        debug_assert!(requests > 0, "nobody to share among");
        if requests <= workers {
            1.0
        } else {
            workers as f64 / requests as f64
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_is_faster_than_a_worker_and_no_worker_idles() {
        for workers in 1..20 {
            for requests in 1..50 {
                let rate = ProcessorSharing.rate(workers, requests);
                assert!(rate <= 1.0);
                let total = rate * requests as f64;
                assert!((total - workers.min(requests) as f64).abs() < 1e-9);
            }
        }
    }
}
