//! Superposed streams of requests, each with an arrival process of its own.

use std::iter::Peekable;
use std::path::PathBuf;
use std::sync::Arc;

use crate::{Arrival, Arrivals, Class, Error, Generator, Offered, Trace, Workload};

impl Workload {
    /// The first `requests` arrivals, at least one, of several workloads together, each at its rate in
    /// requests per second, as a trace to be replayed. No single process gives such arrivals, for
    /// example one class in bursts beside a steady one. Streams are independent of one another.
    ///
    /// # Errors
    /// [`Error::Invalid`] when two streams have a class of the same name, or there is no stream.
    ///
    /// # Panics
    /// When a stream fails [`Workload::check`], or its rate is not a finite number above 0.
    pub fn superposed(
        name: &str,
        streams: &[(Workload, f64)],
        requests: u64,
        seed: u64,
    ) -> Result<Self, Error> {
        let mut superposed = Self::new(name, classes(streams));
        superposed.check()?;
        let mut trace = Trace::empty(PathBuf::from(format!("{name}.csv")));
        for (class, arrival) in Merged::new(streams, seed).take(requests.max(1) as usize) {
            trace.append(arrival.at_ns, class, arrival.service_ns);
        }
        superposed.arrivals = Arrivals::Trace(Arc::new(trace));
        Ok(superposed)
    }
}

/// Every class, with its share of all requests.
fn classes(streams: &[(Workload, f64)]) -> Vec<Class> {
    let total_rps: f64 = streams.iter().map(|(_, rps)| rps).sum();
    streams
        .iter()
        .flat_map(|(stream, rps): &(Workload, f64)| {
            let part = rps / total_rps;
            stream
                .initial_mix()
                .iter()
                .map(move |class: &Class| Class {
                    share: class.share * part,
                    ..class.clone()
                })
                .collect::<Vec<_>>()
        })
        .collect()
}

/// The streams' arrivals in the order of time, each with the name of its class; on a tie the first
/// stream is first.
struct Merged<'a> {
    streams: Vec<(Vec<&'a str>, Peekable<Generator>)>,
}

impl<'a> Merged<'a> {
    fn new(streams: &'a [(Workload, f64)], seed: u64) -> Self {
        Self {
            streams: streams
                .iter()
                .enumerate()
                .map(|(index, (stream, rps)): (usize, &'a (Workload, f64))| {
                    let own_seed = seed.wrapping_add(index as u64);
                    let arrivals = Generator::new(stream, Offered::Rate(*rps), own_seed);
                    (stream.class_names(), arrivals.peekable())
                })
                .collect(),
        }
    }
}

impl<'a> Iterator for Merged<'a> {
    type Item = (&'a str, Arrival);

    fn next(&mut self) -> Option<Self::Item> {
        let at_ns = |arrivals: &mut Peekable<Generator>| arrivals.peek().map(|next| next.at_ns);
        let nexts = self.streams.iter_mut().enumerate();
        let (_, first) = nexts
            .filter_map(|(index, (_, arrivals))| Some((at_ns(arrivals)?, index)))
            .min()?;
        let (names, arrivals) = &mut self.streams[first];
        let arrival = arrivals.next()?;
        Some((names[usize::from(arrival.class)], arrival))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ServiceDistribution;

    fn stream(name: &str, arrivals: Arrivals) -> Workload {
        let service = ServiceDistribution::Constant { mean_ns: 10 };
        let mut workload = Workload::new(name, vec![Class::new(name, 1.0, service)]);
        workload.arrivals = arrivals;
        workload
    }

    /// Each stream keeps its rate and its own process, independent of the other streams.
    #[test]
    fn streams_keep_their_rates_and_processes() {
        let even = (stream("even", Arrivals::Deterministic), 1e6);
        let bursty = (stream("bursty", Arrivals::Gamma { cv: 5.0 }), 3e6);
        let both = Workload::superposed("both", &[even, bursty], 400_000, 1).unwrap();
        let Arrivals::Trace(trace) = &both.arrivals else {
            panic!("it is a trace")
        };
        let shares: Vec<f64> = both.classes.iter().map(|class| class.share).collect();
        assert_eq!(shares, [0.25, 0.75]);
        let times = |name: &str| -> Vec<u64> {
            let class = trace.classes().iter().position(|known| known == name);
            let records = trace.records().iter();
            let own = records.filter(|record| Some(usize::from(record.class)) == class);
            own.map(|record| record.at_ns).collect()
        };
        let gaps = |times: &[u64]| -> Vec<f64> {
            times
                .windows(2)
                .map(|pair: &[u64]| (pair[1] - pair[0]) as f64)
                .collect()
        };
        assert!(gaps(&times("even")).iter().all(|&gap| gap == 1_000.0));
        let gaps = gaps(&times("bursty"));
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>();
        let cv = (variance / gaps.len() as f64).sqrt() / mean;
        assert!((mean / 333.3 - 1.0).abs() < 0.05, "{mean} ns");
        assert!((4.5..5.5).contains(&cv), "{cv}");
    }

    #[test]
    fn classes_of_the_same_name_are_refused() {
        let twice = [(); 2].map(|()| (stream("same", Arrivals::Poisson), 1e6));
        let error = Workload::superposed("both", &twice, 10, 1).unwrap_err();
        assert!(error.to_string().contains("same"), "{error}");
        assert!(Workload::superposed("none", &[], 10, 1).is_err());
    }
}
