//! Metrics in the words of `prometheus-client`: families whose samples are read when they are asked for.

use std::fmt;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use headway_machine::histogram::TimeHistogram;

/// The labels of a sample.
pub type Labels<'a> = Vec<(&'static str, &'a str)>;

/// The metrics of one collector in the text format of OpenMetrics.
pub fn text(collector: impl Collector) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(collector));
    let mut text = String::new();
    // Writing into a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut text, &registry);
    text
}

/// Writes families of metrics.
pub struct MetricsWriter<'a>(DescriptorEncoder<'a>);

impl<'a> MetricsWriter<'a> {
    /// Into this encoder.
    #[must_use]
    pub fn new(encoder: DescriptorEncoder<'a>) -> Self {
        Self(encoder)
    }

    fn family<'s>(
        &'s mut self,
        name: &'s str,
        help: &str,
        kind: MetricType,
    ) -> Result<MetricEncoder<'s>, fmt::Error> {
        self.0.encode_descriptor(name, help, None, kind)
    }

    /// A counter with these samples; the encoder adds `_total` to its name.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn counter<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s>, u64)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, MetricType::Counter)?;
        for (labels, value) in samples {
            family
                .encode_family(&labels.as_slice())?
                .encode_counter::<NoLabelSet, _, u64>(&value, None)?;
        }
        Ok(())
    }

    /// A gauge with these samples.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn gauge<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s>, f64)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, MetricType::Gauge)?;
        for (labels, value) in samples {
            family
                .encode_family(&labels.as_slice())?
                .encode_gauge(&value)?;
        }
        Ok(())
    }

    /// Histograms of times, in seconds.
    ///
    /// # Errors
    /// Those of the encoder.
    pub fn times<'s>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Labels<'s>, &'s TimeHistogram)>,
    ) -> fmt::Result {
        let mut family = self.family(name, help, MetricType::Histogram)?;
        for (labels, times) in samples {
            let buckets: Vec<(f64, u64)> = times
                .octaves()
                .map(|(below_ns, count)| (below_ns as f64 / 1e9, count))
                .chain([(f64::INFINITY, times.beyond_octaves())])
                .collect();
            family
                .encode_family(&labels.as_slice())?
                .encode_histogram::<NoLabelSet>(
                    times.sum_ns() as f64 / 1e9,
                    times.count(),
                    &buckets,
                    None,
                )?;
        }
        Ok(())
    }
}
