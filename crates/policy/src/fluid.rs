//! Policies that allot rates instead of starting and stopping: for virtual time only. No machine
//! runs a thousand requests on fourteen cores at once; what shares in small slices comes near
//! (`shinjuku-sq`, `tiny-quanta`).

use crate::spec::{Description, Params, Reader, Spec, SpecError};

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

    /// The policy, if that is what the spec asks for; it has no parameters.
    ///
    /// # Errors
    /// [`SpecError`] when parameters are given.
    pub fn asked_for(spec: &Spec) -> Result<Option<(Self, Params)>, SpecError> {
        if spec.name != Self::NAME {
            return Ok(None);
        }
        let read = Reader::new(&Self::ABOUT, spec)?;
        Ok(Some((Self, read.used())))
    }

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

    #[test]
    fn takes_no_parameters() {
        let asked = |text: &str| ProcessorSharing::asked_for(&text.parse().unwrap());
        assert_eq!(asked("ps"), Ok(Some((ProcessorSharing, Params::new()))));
        assert_eq!(asked("darc"), Ok(None));
        assert!(asked("ps,q=5us").is_err());
    }
}
