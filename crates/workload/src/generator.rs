//! From a workload and a rate to a sequence of arrivals.

use std::sync::Arc;

use crate::alias::Alias;
use crate::random::{Seeder, Stream};
use crate::sampler::Sampler;
use crate::workload::rate_for_load;
use crate::ziggurat::Exponential;
use crate::{Arrivals, Class, Trace, Workload};

/// One request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, in nanoseconds from the start.
    pub at_ns: u64,
    /// Its class: an index into [`Workload::class_names`].
    pub class: u16,
    /// How long it occupies a worker, at least 1.
    pub service_ns: u64,
    /// The hash of its flow, uniform over all 32-bit values, for steering.
    pub flow: u32,
}

/// The offered rate or load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Offered {
    /// This many requests per second, whatever the phase.
    Rate(f64),
    /// The rate that loads the workers to this fraction, computed for each phase from its own mean service time.
    Load {
        /// Utilisation of the workers: 1 is saturation, more is overload.
        load: f64,
        /// Number of workers.
        workers: usize,
    },
}

impl Offered {
    /// The rate in requests per second for a mix of classes.
    fn rate_rps(self, mix: &[Class]) -> f64 {
        match self {
            Self::Rate(rate_rps) => rate_rps,
            Self::Load { load, workers } => rate_for_load(mix, load, workers),
        }
    }
}

/// An iterator over the arrivals of a workload: endless, except for a trace.
///
/// The sequence depends only on the workload, the offered rate and the seed.
#[derive(Debug, Clone)]
pub struct Generator {
    source: ArrivalSource,
    flows: Stream,
}

#[derive(Debug, Clone)]
enum ArrivalSource {
    Synthetic(Synthetic),
    Replay(TraceReplay),
}

impl Generator {
    /// A generator of `workload` at the offered rate. A trace is replayed as recorded, and ignores the
    /// offered rate.
    ///
    /// # Panics
    /// When [`Workload::check`] fails, or the rate is not a finite number above 0.
    #[must_use]
    pub fn new(workload: &Workload, offered: Offered, seed: u64) -> Self {
        workload.check().unwrap_or_else(|error| panic!("{error}"));
        let mut seeder = Seeder::new(seed);
        let flows = seeder.stream();
        let source = match &workload.arrivals {
            Arrivals::Trace(trace) => ArrivalSource::Replay(TraceReplay::new(workload, trace)),
            _ => ArrivalSource::Synthetic(Synthetic::new(workload, offered, &mut seeder)),
        };
        Self { source, flows }
    }

    /// Draws the next arrivals before `until_ns`, at most `most` of them, and appends them. The first one beyond is drawn
    /// and left out.
    pub fn draw(&mut self, most: usize, until_ns: u64, into: &mut Vec<Arrival>) {
        into.reserve(most);
        for _ in 0..most {
            let Some(Arrival {
                at_ns,
                class,
                service_ns,
                flow,
            }) = self.next()
            else {
                return;
            };
            if at_ns >= until_ns {
                return;
            }
            // Field by field: a copy of the whole struct is a wider read than the stores before it, and would wait for them.
            into.push(Arrival {
                at_ns,
                class,
                service_ns,
                flow,
            });
        }
    }
}

impl Iterator for Generator {
    type Item = Arrival;

    #[inline]
    fn next(&mut self) -> Option<Arrival> {
        let DrawnRequest {
            at_ns,
            class,
            service_ns,
        } = match &mut self.source {
            ArrivalSource::Synthetic(synthetic) => synthetic.next(),
            ArrivalSource::Replay(replay) => replay.next()?,
        };
        let flow = (self.flows.word() >> 32) as u32;
        Some(Arrival {
            at_ns,
            class,
            service_ns,
            flow,
        })
    }
}

/// An arrival before its flow is drawn.
struct DrawnRequest {
    at_ns: u64,
    class: u16,
    service_ns: u64,
}

#[derive(Debug, Clone)]
struct TraceReplay {
    trace: Arc<Trace>,
    position: usize,
    /// The workload's class index for each class of the trace.
    classes: Box<[u16]>,
}

impl TraceReplay {
    fn new(workload: &Workload, trace: &Arc<Trace>) -> Self {
        let classes = trace
            .classes()
            .iter()
            .map(|name: &String| workload.class_index(name).expect("checked: it is declared"))
            .collect();
        Self {
            trace: Arc::clone(trace),
            position: 0,
            classes,
        }
    }

    fn next(&mut self) -> Option<DrawnRequest> {
        let record = self.trace.records().get(self.position)?;
        self.position += 1;
        Some(DrawnRequest {
            at_ns: record.at_ns,
            class: self.classes[usize::from(record.class)],
            service_ns: record.service_ns,
        })
    }
}

#[derive(Debug, Clone)]
struct Synthetic {
    clock: ArrivalClock,
    gap: GapDistribution,
    mixes: Box<[Mix]>,
    current: usize,
    gaps: Stream,
    classes: Stream,
    services: Stream,
}

impl Synthetic {
    fn new(workload: &Workload, offered: Offered, seeder: &mut Seeder) -> Self {
        Self {
            clock: ArrivalClock::default(),
            gap: GapDistribution::new(&workload.arrivals),
            mixes: mixes(workload, offered),
            current: 0,
            gaps: seeder.stream(),
            classes: seeder.stream(),
            services: seeder.stream(),
        }
    }

    #[inline]
    fn next(&mut self) -> DrawnRequest {
        let gap = self.gap.sample(&mut self.gaps);
        self.clock
            .advance(gap * self.mixes[self.current].mean_gap_ns);
        if self.clock.whole_ns >= self.mixes[self.current].end_ns {
            self.change_phase();
        }
        let mix = &self.mixes[self.current];
        let (class, sampler) = &mix.classes[mix.choice.sample(&mut self.classes)];
        DrawnRequest {
            at_ns: self.clock.rounded_ns(),
            class: *class,
            service_ns: sampler.sample(&mut self.services),
        }
    }

    /// The arrival falls beyond the phase's end: the rest of its gap passes at the next phase's rate. For
    /// Poisson arrivals this is exactly the process whose rate changes at the boundary; for the other
    /// processes it is the same change of time scale.
    #[cold]
    fn change_phase(&mut self) {
        let last = self.mixes.len() - 1;
        while self.current < last && self.clock.whole_ns >= self.mixes[self.current].end_ns {
            let Mix {
                end_ns,
                mean_gap_ns,
                ..
            } = self.mixes[self.current];
            let left = self.clock.since(end_ns) / mean_gap_ns;
            self.current += 1;
            self.clock = ArrivalClock {
                whole_ns: end_ns,
                fraction_ns: 0.0,
            };
            self.clock
                .advance(left * self.mixes[self.current].mean_gap_ns);
        }
    }
}

/// Time in nanoseconds, split so that adding small gaps to a large time loses nothing.
#[derive(Debug, Clone, Default)]
struct ArrivalClock {
    whole_ns: u64,
    /// The fraction of a nanosecond, from 0 to below 1.
    fraction_ns: f64,
}

impl ArrivalClock {
    #[inline]
    fn advance(&mut self, by_ns: f64) {
        let sum = self.fraction_ns + by_ns;
        let whole = sum as u64;
        self.whole_ns = self.whole_ns.saturating_add(whole);
        self.fraction_ns = (sum - whole as f64).min(1.0);
    }

    #[inline]
    fn rounded_ns(&self) -> u64 {
        self.whole_ns
            .saturating_add(u64::from(self.fraction_ns >= 0.5))
    }

    fn since(&self, start_ns: u64) -> f64 {
        (self.whole_ns - start_ns) as f64 + self.fraction_ns
    }
}

/// Gaps between arrivals, in units of their mean.
#[derive(Debug, Clone)]
enum GapDistribution {
    Exponential(Exponential),
    Constant,
    Gamma { shape: f64 },
}

impl GapDistribution {
    fn new(arrivals: &Arrivals) -> Self {
        match arrivals {
            Arrivals::Poisson => Self::Exponential(Exponential::new()),
            Arrivals::Deterministic | Arrivals::Trace(_) => Self::Constant,
            Arrivals::Gamma { cv } => Self::Gamma {
                shape: 1.0 / (cv * cv),
            },
        }
    }

    #[inline]
    fn sample(&self, stream: &mut Stream) -> f64 {
        match self {
            Self::Exponential(unit) => unit.sample(stream),
            Self::Constant => 1.0,
            Self::Gamma { shape } => stream.gamma(*shape) / shape,
        }
    }
}

/// A phase, prepared for drawing.
#[derive(Debug, Clone)]
struct Mix {
    /// `u64::MAX` for the last phase, which never ends.
    end_ns: u64,
    mean_gap_ns: f64,
    choice: Alias,
    classes: Box<[(u16, Sampler)]>,
}

impl Mix {
    fn new(workload: &Workload, classes: &[Class], offered: Offered, end_ns: u64) -> Self {
        let rate_rps = offered.rate_rps(classes);
        assert!(
            rate_rps.is_finite() && rate_rps > 0.0,
            "the offered rate must be a finite number above 0, is {rate_rps} requests per second"
        );
        let shares: Vec<f64> = classes.iter().map(|class| class.share).collect();
        Self {
            end_ns,
            mean_gap_ns: 1e9 / rate_rps,
            choice: Alias::new(&shares),
            classes: classes
                .iter()
                .map(|class: &Class| {
                    let index = workload
                        .class_index(&class.name)
                        .expect("it is a class of the workload");
                    (index, Sampler::new(&class.service))
                })
                .collect(),
        }
    }
}

fn mixes(workload: &Workload, offered: Offered) -> Box<[Mix]> {
    if workload.phases.is_empty() {
        return Box::new([Mix::new(workload, &workload.classes, offered, u64::MAX)]);
    }
    let mut start_ns = 0_u64;
    let mut mixes: Vec<Mix> = Vec::with_capacity(workload.phases.len());
    for phase in &workload.phases {
        start_ns = start_ns.saturating_add(phase.duration_ns);
        mixes.push(Mix::new(workload, &phase.classes, offered, start_ns));
    }
    if let Some(last) = mixes.last_mut() {
        last.end_ns = u64::MAX;
    }
    mixes.into()
}
