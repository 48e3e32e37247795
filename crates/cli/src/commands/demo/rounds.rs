//! The rounds: every policy once in each, with the same requests, in rotating order.

use crate::commands::demo::entrant::{Entrant, Offer};
use crate::commands::demo::lane::{Lane, Round};
use crate::commands::demo::live;
use crate::commands::demo::rate::MARGIN;
use crate::commands::demo::stage::Stage;
use crate::commands::demo::untouched::Lives;
use crate::commands::demo::verdict;
use crate::interrupt::Interrupt;
use anyhow::Result;
use indicatif::ProgressBar;
use std::time::Instant;

/// The limits on the number and time of rounds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundLimits {
    /// The number of rounds before the interim look. There is no look besides this one and the last: testing repeatedly until a
    /// difference shows would prove nothing.
    pub(crate) look: u64,
    /// The most rounds.
    pub(crate) most: u64,
    /// No round begins later than this.
    pub(crate) end: Instant,
}

/// The inputs of a round.
pub(crate) struct Course<'a> {
    pub(crate) stage: &'a mut Stage,
    pub(crate) entrants: &'a [Entrant],
    pub(crate) offer: Offer,
    pub(crate) limits: RoundLimits,
    pub(crate) bar: &'a ProgressBar,
    pub(crate) interrupt: &'a Interrupt,
}

impl Course<'_> {
    /// Runs rounds until every comparison with the lane `base` is decided at the interim look, or until the end. Returns whether the user ended them
    /// before: then those count that every policy had.
    pub(crate) fn play(&mut self, lanes: &mut [Lane], base: usize) -> Result<bool> {
        while (lanes[base].rounds.len() as u64) < self.limits.most {
            let played = lanes[base].rounds.len() as u64;
            if played >= self.limits.look && Instant::now() > self.limits.end {
                break;
            }
            let ended = self.round(played, lanes);
            if self.interrupt.pressed() && played > 0 {
                let complete = lanes.iter().map(|lane| lane.rounds.len()).min();
                let complete = complete.unwrap_or(0);
                for lane in lanes.iter_mut() {
                    lane.rounds.truncate(complete);
                    lane.judge();
                }
                return Ok((complete as u64) < self.limits.most);
            }
            ended?;
            lanes.iter_mut().for_each(Lane::judge);
            if played + 1 == self.limits.look && verdict::all_decided(lanes, &lanes[base]) {
                break;
            }
        }
        Ok(false)
    }

    /// Runs the first round. If its handlers take longer than in the pilot, the machine got busier: the function lowers the
    /// rate by that factor, and the round does not count. Returns the factor.
    pub(crate) fn set_pace(&mut self, lanes: &mut [Lane]) -> Result<Option<f64>> {
        self.round(0, lanes)?;
        let loads = lanes.iter().map(|lane| lane.rounds[0].load);
        let load = loads.sum::<f64>() / lanes.len() as f64;
        let (workload, workers) = (&self.stage.workload, self.stage.workers);
        let planned = workload.load_for_rate(self.offer.rate_rps, workers);
        if load <= planned * MARGIN {
            return Ok(None);
        }
        lanes.iter_mut().for_each(|lane| lane.rounds.clear());
        let factor = planned / load;
        self.offer.rate_rps *= factor;
        Ok(Some(factor))
    }

    fn round(&mut self, round: u64, lanes: &mut [Lane]) -> Result<()> {
        self.stage.watch_noise()?;
        let offer = Offer {
            seed: self.offer.seed.wrapping_add(round),
            ..self.offer
        };
        let lives = Lives::of(self.stage, self.entrants, &offer)?;
        for turn in 0..lanes.len() {
            // So that no policy always follows the same one.
            let index = (turn + round as usize) % lanes.len();
            let entrant = &self.entrants[index];
            self.bar.set_message(format!(
                "round {} of at most {}: {}",
                round + 1,
                self.limits.most,
                entrant.name
            ));
            let played = live::play(self.stage, &entrant.policy, &offer, self.interrupt)?;
            let round = Round::of(self.stage, (index, entrant), &offer, played, &lives)?;
            lanes[index].rounds.push(round);
            self.bar.inc(1);
        }
        Ok(())
    }
}
