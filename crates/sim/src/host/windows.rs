//! Latency over time: the tail of every window of arrivals.

/// The latencies of the requests that arrived in one window.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Window {
    /// When it began, ns.
    pub start_ns: u64,
    /// Requests that arrived in it and were served.
    pub served: u64,
    /// 99.9th percentile of their latency, ns, by nearest rank; 0 without any request.
    pub p999_ns: u64,
}

/// Latencies by window of arrival.
pub(super) struct Windows {
    width_ns: u64,
    latencies: Vec<Vec<u64>>,
}

impl Windows {
    pub(super) fn new(width_ns: u64) -> Self {
        Self {
            width_ns,
            latencies: Vec::new(),
        }
    }

    #[inline]
    pub(super) fn record(&mut self, arrived_ns: u64, latency_ns: u64) {
        let index = (arrived_ns / self.width_ns) as usize;
        if index >= self.latencies.len() {
            self.latencies.resize_with(index + 1, Vec::new);
        }
        self.latencies[index].push(latency_ns);
    }

    pub(super) fn close(self) -> Vec<Window> {
        let width_ns = self.width_ns;
        self.latencies
            .into_iter()
            .enumerate()
            .map(|(index, mut latencies): (usize, Vec<u64>)| Window {
                start_ns: index as u64 * width_ns,
                served: latencies.len() as u64,
                p999_ns: p999(&mut latencies),
            })
            .collect()
    }
}

/// Nearest rank.
fn p999(values: &mut [u64]) -> u64 {
    let rank = headway_report::nearest_rank(values.len() as u64, 0.999) as usize;
    if values.is_empty() {
        return 0;
    }
    *values.select_nth_unstable(rank.max(1) - 1).1
}
