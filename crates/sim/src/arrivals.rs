//! The requests of an experiment, in the order in which they arrive.

use crate::experiment::{Classification, Experiment, Length};
use crate::flows::DrawnFlows;
use crate::server::{NEVER, SimRequest};
use headway_policy::Rng;
use headway_workload::{Arrival, Generator};

/// Arrivals drawn at a time.
const DRAWN: usize = 64;

/// The arrivals still to come.
pub(crate) struct RequestStream<'a> {
    generator: Generator,
    flows: Option<DrawnFlows>,
    /// The next arrivals, drawn as a batch: the reader then finds them written long ago, and drawing never waits
    /// for the server's code.
    drawn: Vec<Arrival>,
    /// Index of the next arrival in `drawn`.
    next: usize,
    left: u64,
    until_ns: u64,
    /// Requests before this index are not measured.
    counted_from: u64,
    index: u64,
    /// Whether it ended before its time.
    cut_off: bool,
    classes: usize,
    classifier: Rng,
    recognition: Rng,
    experiment: &'a Experiment,
}

impl<'a> RequestStream<'a> {
    pub(crate) fn new(experiment: &'a Experiment) -> Self {
        let (left, until_ns) = match experiment.length {
            Length::Requests(requests) => (requests, u64::MAX),
            Length::Duration(ns) => (u64::MAX, ns),
        };
        let mut arrivals = Self {
            generator: Generator::new(&experiment.workload, experiment.offered, experiment.seed),
            flows: experiment.flows.map(|flows| flows.drawn(experiment.seed)),
            drawn: Vec::with_capacity(DRAWN),
            next: 0,
            left,
            until_ns,
            counted_from: (experiment.warm_up * experiment.expected_requests()) as u64,
            index: 0,
            cut_off: false,
            classes: experiment.workload.class_names().len(),
            classifier: Rng::new(experiment.seed ^ 0xC1A5_51F1_E72A_4D03),
            recognition: Rng::new(experiment.seed ^ 0x0DD5_0A11_57A7_E5E1),
            experiment,
        };
        arrivals.draw();
        arrivals
    }

    #[inline]
    pub(crate) fn next_ns(&self) -> u64 {
        let next = self.drawn.get(self.next);
        next.map_or(NEVER, |arrival| arrival.at_ns)
    }

    /// The next request, in the order of time.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<SimRequest> {
        let arrival = *self.drawn.get(self.next)?;
        let taken_for = self.classify(arrival.class);
        let request = SimRequest {
            tag: self.index,
            arrived_ns: arrival.at_ns,
            service_ns: arrival.service_ns,
            flow: arrival.flow,
            class: arrival.class,
            taken_for,
            counted: self.index >= self.counted_from,
        };
        self.index += 1;
        self.next += 1;
        if self.next == self.drawn.len() {
            self.draw();
        }
        Some(request)
    }

    /// The class that the server's classifier assigns to a request of this class. An exact classifier that recognises every request
    /// draws no random number.
    #[inline]
    fn classify(&mut self, class: u16) -> u16 {
        let unknown_share = self.experiment.unknown_share;
        let is_unknown = unknown_share > 0.0 && {
            let drawn = self.recognition.next_u64() >> 11;
            (drawn as f64 / (1_u64 << 53) as f64) < unknown_share
        };
        if is_unknown {
            return self.classes as u16;
        }
        match self.experiment.classifier {
            Classification::Exact => class,
            Classification::Random => self.classifier.below(self.classes) as u16,
        }
    }

    /// Whether the experiment was [cut off](Experiment::cutoff) before its last arrival.
    pub(crate) fn is_cut_off(&self) -> bool {
        self.cut_off
    }

    /// Draws the next batch of arrivals; an empty batch ends the stream.
    fn draw(&mut self) {
        let (until_ns, count) = (self.until_ns, self.left.min(DRAWN as u64));
        self.drawn.clear();
        if self.experiment.is_cut_off() && count > 0 {
            self.cut_off = true;
            return;
        }
        self.generator
            .draw(count as usize, until_ns, &mut self.drawn);
        if let Some(flows) = &self.flows {
            for arrival in &mut self.drawn {
                arrival.flow = flows.hash(arrival.flow);
            }
        }
        self.left -= self.drawn.len() as u64;
        self.next = 0;
    }
}
