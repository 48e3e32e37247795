//! Arrivals at a rate that changes in steps.

use super::experiment::RateStep;
use crate::server::NEVER;
use headway_workload::{Arrival, Arrivals, Generator, Offered, Workload};

/// The rate of a generator whose time is stretched to that of each step: its mean gap is a million times what its clock tells apart.
const STRETCHED_RPS: f64 = 1e3;

/// One step after the other. Poisson arrivals have no memory, so a new generator at each step gives exactly the process whose rate changes there. Other
/// processes have one generator, whose time each step stretches: the rest of a gap passes at the next step's rate.
/// [`check`](super::HostExperiment::check) refuses phases beside several steps, since each generator begins with the first phase.
pub(super) struct SteppedArrivals {
    workload: Workload,
    steps: Vec<RateStep>,
    seed: u64,
    current: usize,
    start_ns: u64,
    end_ns: u64,
    generator: Option<Generator>,
    /// Whether there is one generator for all steps.
    stretches: bool,
    /// Its time at the start of the present step, ns.
    stretched_start_ns: f64,
    next: Option<Arrival>,
}

impl SteppedArrivals {
    /// Arrivals until `until_ns`, the end of the last step.
    pub(super) fn new(workload: &Workload, steps: &[RateStep], until_ns: u64, seed: u64) -> Self {
        let mut start_ns = 0;
        let mut clipped = Vec::with_capacity(steps.len());
        for (index, step) in steps.iter().enumerate() {
            let left_ns = until_ns.saturating_sub(start_ns);
            let lasts_ns = if index + 1 == steps.len() {
                left_ns
            } else {
                step.lasts_ns.min(left_ns)
            };
            clipped.push(RateStep { lasts_ns, ..*step });
            start_ns += lasts_ns;
        }
        let mut arrivals = Self {
            workload: workload.clone(),
            steps: clipped,
            seed,
            current: 0,
            start_ns: 0,
            end_ns: 0,
            generator: None,
            stretches: steps.len() > 1 && workload.arrivals != Arrivals::Poisson,
            stretched_start_ns: 0.0,
            next: None,
        };
        if arrivals.stretches {
            let offered = Offered::Rate(STRETCHED_RPS);
            arrivals.generator = Some(Generator::new(workload, offered, seed));
        }
        arrivals.begin();
        arrivals.advance();
        arrivals
    }

    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.next.as_ref().map_or(NEVER, |arrival| arrival.at_ns)
    }

    #[inline]
    pub(super) fn take(&mut self) -> Option<Arrival> {
        let arrival = self.next?;
        self.advance();
        Some(arrival)
    }

    /// Nothing arrives any more.
    pub(super) fn end(&mut self) {
        self.next = None;
    }

    fn begin(&mut self) {
        let Some(step) = self.steps.get(self.current) else {
            self.generator = None;
            return;
        };
        self.start_ns = self.end_ns;
        self.end_ns += step.lasts_ns;
        if self.stretches {
            return;
        }
        let seed = self.seed ^ (self.current as u64).rotate_left(32);
        self.generator = (step.rate_rps > 0.0)
            .then(|| Generator::new(&self.workload, Offered::Rate(step.rate_rps), seed));
    }

    fn advance(&mut self) {
        if self.stretches {
            return self.advance_stretched();
        }
        while self.current < self.steps.len() {
            if let Some(arrival) = self.generator.as_mut().and_then(Iterator::next) {
                let at_ns = self.start_ns.saturating_add(arrival.at_ns);
                if at_ns < self.end_ns {
                    self.next = Some(Arrival { at_ns, ..arrival });
                    return;
                }
            }
            self.current += 1;
            self.begin();
        }
        self.next = None;
    }

    fn advance_stretched(&mut self) {
        self.next = None;
        let Some(arrival) = self.generator.as_mut().and_then(Iterator::next) else {
            return;
        };
        while let Some(step) = self.steps.get(self.current) {
            let speed = step.rate_rps / STRETCHED_RPS;
            let since_ns = arrival.at_ns as f64 - self.stretched_start_ns;
            let lasts_ns = step.lasts_ns as f64 * speed;
            if since_ns < lasts_ns {
                let at_ns = self.start_ns + (since_ns / speed) as u64;
                self.next = Some(Arrival { at_ns, ..arrival });
                return;
            }
            self.stretched_start_ns += lasts_ns;
            self.current += 1;
            self.begin();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_has_its_rate_and_the_last_goes_on() {
        let workload = Workload::named("fixed-1us").unwrap();
        let step = |lasts_ns, rate_rps| RateStep { lasts_ns, rate_rps };
        let steps = [step(100_000_000, 1e5), step(100_000_000, 0.0), step(1, 1e6)];
        let mut arrivals = SteppedArrivals::new(&workload, &steps, 300_000_000, 1);
        let mut counts = [0_u64; 3];
        let mut last_ns = 0;
        while let Some(arrival) = arrivals.take() {
            assert!(arrival.at_ns >= last_ns, "in order of time");
            last_ns = arrival.at_ns;
            counts[(arrival.at_ns / 100_000_000) as usize] += 1;
        }
        // Four standard deviations of a Poisson count.
        assert!(counts[0].abs_diff(10_000) < 400, "{counts:?}");
        assert_eq!(counts[1], 0);
        assert!(counts[2].abs_diff(100_000) < 1_300, "{counts:?}");
    }

    /// Two gaps of 100 µs, and four of 25 µs of which the first has begun before.
    #[test]
    fn a_gap_goes_on_over_the_end_of_a_step() {
        let mut workload = Workload::named("fixed-1us").unwrap();
        workload.arrivals = Arrivals::Deterministic;
        let step = |lasts_ns, rate_rps| RateStep { lasts_ns, rate_rps };
        let steps = [step(250_000, 1e4), step(50_000, 0.0), step(100_000, 4e4)];
        let mut arrivals = SteppedArrivals::new(&workload, &steps, 400_000, 1);
        let times: Vec<u64> = std::iter::from_fn(|| arrivals.take())
            .map(|arrival| arrival.at_ns)
            .collect();
        assert_eq!(
            times,
            [100_000, 200_000, 312_500, 337_500, 362_500, 387_500]
        );
    }

    /// Steps far shorter than a gap: a process that began anew in each would never come to an arrival.
    #[test]
    fn short_steps_do_not_change_the_rate() {
        let mut workload = Workload::named("fixed-1us").unwrap();
        for process in [Arrivals::Deterministic, Arrivals::Gamma { cv: 3.0 }] {
            workload.arrivals = process;
            let step = RateStep {
                lasts_ns: 1_000,
                rate_rps: 1e5,
            };
            let end_ns = 100_000_000;
            let steps = vec![step; 100_000];
            let mut arrivals = SteppedArrivals::new(&workload, &steps, end_ns, 1);
            let count = std::iter::from_fn(|| arrivals.take()).count();
            // Four standard deviations of a count of gamma arrivals.
            assert!(count.abs_diff(10_000) < 1_200, "{count}");
        }
    }
}
