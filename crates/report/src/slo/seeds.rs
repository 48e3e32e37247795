//! A verdict by several runs, each under another seed.

use super::objective::Slo;
use super::parse::SloError;
use super::verdict::Verdict;
use crate::run::Run;
use crate::slo_seeds::SloSeeds;

impl Slo {
    /// Judges several runs of one experiment. `None` where one of them was cut off, or is too short to show the SLO, or there is none.
    ///
    /// # Errors
    /// [`SloError::UnknownClass`] when a bound names a class that a run does not have.
    pub fn by_seeds<'a>(
        &self,
        runs: impl IntoIterator<Item = &'a Run>,
    ) -> Result<Option<SloSeeds>, SloError> {
        let mut seeds = SloSeeds { runs: 0, met: 0 };
        for run in runs {
            let verdict = self.evaluate(run)?;
            if run.extras.cut_off || matches!(verdict, Verdict::Unshown(_)) {
                return Ok(None);
            }
            seeds.runs += 1;
            seeds.met += u64::from(verdict.is_met());
        }
        Ok(Some(seeds).filter(|seeds| seeds.runs > 0))
    }
}
