//! The recorder: latency and slowdown of every request, by class.

use crate::histogram::Histogram;

/// Slowdowns are kept as integers in thousandths: 1.000 is 1 000.
///
/// The rounding is at most 0.0005 on a quantity that is at least 1 at a server, less than the
/// histogram's own 1/1 024.
pub(crate) const SLOWDOWN_SCALE: f64 = 1000.0;

/// A class's name and mean service time, known before the run.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassMeta {
    /// The class's name in the workload.
    pub name: String,
    /// Mean un-instrumented service time, in ns.
    pub service_ns: f64,
}

impl ClassMeta {
    /// A class called `name` whose requests need `service_ns` nanoseconds on average.
    pub fn new(name: impl Into<String>, service_ns: f64) -> Self {
        Self {
            name: name.into(),
            service_ns,
        }
    }
}

/// The measurements of one class.
#[derive(Clone, Debug)]
pub struct ClassRecord {
    meta: ClassMeta,
    latency_ns: Histogram,
    slowdown_milli: Histogram,
    slowdown_sum: f64,
    slowdown_max: f64,
    dropped: u64,
    /// The last divisor (a service time) and its reciprocal. A class of constant service time, the
    /// usual case, divides once.
    reciprocal_of_ns: u64,
    reciprocal: f64,
}

impl ClassRecord {
    fn new(meta: ClassMeta) -> Self {
        Self {
            meta,
            latency_ns: Histogram::new(),
            slowdown_milli: Histogram::new(),
            slowdown_sum: 0.0,
            slowdown_max: 0.0,
            dropped: 0,
            reciprocal_of_ns: 1,
            reciprocal: 1.0,
        }
    }

    #[inline]
    fn record(&mut self, latency_ns: u64, service_ns: u64) -> u64 {
        let slowdown = latency_ns as f64 * self.reciprocal_of(service_ns);
        let slowdown_milli = (slowdown * SLOWDOWN_SCALE + 0.5) as u64;
        self.latency_ns.record(latency_ns);
        self.slowdown_milli.record(slowdown_milli);
        self.slowdown_sum += slowdown;
        self.slowdown_max = self.slowdown_max.max(slowdown);
        slowdown_milli
    }

    #[inline]
    fn reciprocal_of(&mut self, service_ns: u64) -> f64 {
        if service_ns != self.reciprocal_of_ns {
            self.reciprocal_of_ns = service_ns;
            self.reciprocal = 1.0 / service_ns.max(1) as f64;
        }
        self.reciprocal
    }

    fn merge(&mut self, other: &Self) {
        self.latency_ns.merge(&other.latency_ns);
        self.slowdown_milli.merge(&other.slowdown_milli);
        self.slowdown_sum += other.slowdown_sum;
        self.slowdown_max = self.slowdown_max.max(other.slowdown_max);
        self.dropped += other.dropped;
    }

    /// Name and mean service time.
    pub fn meta(&self) -> &ClassMeta {
        &self.meta
    }

    /// Requests completed and recorded.
    pub fn count(&self) -> u64 {
        self.latency_ns.count()
    }

    /// Requests shed or lost: counted, without a latency.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Latencies, in ns.
    pub fn latency_ns(&self) -> &Histogram {
        &self.latency_ns
    }

    /// Slowdowns, in thousandths.
    pub fn slowdown_milli(&self) -> &Histogram {
        &self.slowdown_milli
    }

    /// The mean slowdown, from the sum of the unrounded ratios; `None` when nothing was recorded.
    pub fn slowdown_mean(&self) -> Option<f64> {
        let count = self.count();
        (count > 0).then(|| self.slowdown_sum / count as f64)
    }

    /// The largest slowdown, unrounded; `None` when nothing was recorded.
    pub fn slowdown_max(&self) -> Option<f64> {
        (self.count() > 0).then_some(self.slowdown_max)
    }
}

/// Latency and slowdown histograms for each class of a workload.
///
/// Recording allocates nothing and takes a few nanoseconds (`cargo bench -p headway-report`).
/// A thread that measures keeps its own recorder; [`Recorder::merge`] joins them afterwards.
///
/// # Examples
///
/// ```
/// use headway_report::{ClassMeta, Recorder};
///
/// let mut recorder = Recorder::new(&[ClassMeta::new("GET", 500.0), ClassMeta::new("SCAN", 5e5)]);
/// recorder.record(0, 1_250, 500);
/// recorder.dropped(1);
///
/// let get = &recorder.classes()[0];
/// assert_eq!(get.slowdown_milli().quantile(0.5), Some(2_500));
/// assert_eq!(recorder.classes()[1].dropped(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct Recorder {
    classes: Vec<ClassRecord>,
}

impl Recorder {
    /// An empty recorder for `classes`; later calls name a class by its index.
    ///
    /// It allocates 880 KiB a class here and nothing later.
    pub fn new(classes: &[ClassMeta]) -> Self {
        Self {
            classes: classes.iter().cloned().map(ClassRecord::new).collect(),
        }
    }

    /// Records a completed request. `latency_ns` is the time from its arrival (live: from the intended
    /// send time) to its completion. `service_ns` is its own un-instrumented service time. Returns the
    /// recorded slowdown, in thousandths.
    ///
    /// The slowdown is latency × (1 / service): the two roundings put it within 2⁻⁵² (relative) of
    /// the true ratio. A service time of 0 counts as 1 ns.
    ///
    /// # Panics
    ///
    /// If `class` is not an index into the classes given to [`Recorder::new`].
    #[inline]
    pub fn record(&mut self, class: usize, latency_ns: u64, service_ns: u64) -> u64 {
        self.classes[class].record(latency_ns, service_ns)
    }

    /// Counts a request that was shed or lost.
    ///
    /// # Panics
    ///
    /// If `class` is not an index into the classes given to [`Recorder::new`].
    #[inline]
    pub fn dropped(&mut self, class: usize) {
        self.classes[class].dropped += 1;
    }

    /// Adds every record of `other`.
    ///
    /// # Panics
    ///
    /// If `other` was made for other classes: the sum would mix them silently.
    pub fn merge(&mut self, other: &Self) {
        let names = |recorder: &Self| -> Vec<String> {
            recorder
                .classes
                .iter()
                .map(|class| class.meta.name.clone())
                .collect()
        };
        assert_eq!(
            names(self),
            names(other),
            "recorders of different classes cannot be merged"
        );
        for (mine, theirs) in self.classes.iter_mut().zip(&other.classes) {
            mine.merge(theirs);
        }
    }

    /// Takes over the classes of `other` behind its own, each called `prefix.class`.
    pub fn append(&mut self, prefix: &str, other: &Self) {
        self.classes
            .extend(other.classes.iter().map(|class: &ClassRecord| {
                let mut class = class.clone();
                class.meta.name = format!("{prefix}.{}", class.meta.name);
                class
            }));
    }

    /// The classes, in the order given to [`Recorder::new`].
    pub fn classes(&self) -> &[ClassRecord] {
        &self.classes
    }

    /// All classes as one, named "overall"; its mean service time is weighted by their counts.
    pub fn overall(&self) -> ClassRecord {
        let mut overall = ClassRecord::new(ClassMeta::new("overall", self.mean_service_ns()));
        for class in &self.classes {
            overall.merge(class);
        }
        overall
    }

    fn mean_service_ns(&self) -> f64 {
        let count: u64 = self.classes.iter().map(ClassRecord::count).sum();
        let total_ns: f64 = self
            .classes
            .iter()
            .map(|class| class.meta.service_ns * class.count() as f64)
            .sum();
        if count > 0 {
            total_ns / count as f64
        } else {
            0.0
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_classes() -> Recorder {
        Recorder::new(&[
            ClassMeta::new("short", 500.0),
            ClassMeta::new("long", 500_000.0),
        ])
    }

    #[test]
    fn slowdown_divides_by_each_requests_own_service_time() {
        let mut recorder = two_classes();
        recorder.record(0, 500, 500);
        recorder.record(0, 3_000, 1_000);
        let short = &recorder.classes()[0];
        assert_eq!(short.slowdown_milli().quantile(0.0), Some(1_000));
        assert_eq!(short.slowdown_max(), Some(3.0));
        assert_eq!(short.slowdown_mean(), Some(2.0));
    }

    #[test]
    fn the_mean_slowdown_is_not_rounded_to_thousandths() {
        let mut recorder = two_classes();
        recorder.record(0, 1_000_001, 1_000_000);
        let mean = recorder.classes()[0].slowdown_mean().unwrap();
        assert!((mean - 1.000_001).abs() < 1e-12, "{mean}");
    }

    #[test]
    fn a_service_time_of_zero_counts_as_one_nanosecond() {
        let mut recorder = two_classes();
        recorder.record(0, 70, 0);
        assert_eq!(recorder.classes()[0].slowdown_max(), Some(70.0));
    }

    #[test]
    fn merging_adds_counts_and_drops() {
        let (mut left, mut right) = (two_classes(), two_classes());
        left.record(0, 600, 500);
        right.record(0, 1_000, 500);
        right.record(1, 500_000, 500_000);
        right.dropped(1);
        left.merge(&right);
        assert_eq!(left.classes()[0].count(), 2);
        assert_eq!(left.classes()[0].latency_ns().mean(), Some(800.0));
        assert_eq!(left.classes()[1].dropped(), 1);
    }

    #[test]
    #[should_panic(expected = "different classes")]
    fn recorders_of_different_classes_do_not_merge() {
        two_classes().merge(&Recorder::new(&[ClassMeta::new("short", 500.0)]));
    }

    #[test]
    fn overall_is_every_class_together() {
        let mut recorder = two_classes();
        recorder.record(0, 500, 500);
        recorder.record(1, 1_000_000, 500_000);
        recorder.dropped(0);
        let overall = recorder.overall();
        assert_eq!((overall.count(), overall.dropped()), (2, 1));
        assert_eq!(overall.slowdown_mean(), Some(1.5));
        assert_eq!(overall.meta().service_ns, 250_250.0);
    }
}
