//! A histogram of `u64` values with the exact sum and the exact maximum beside it.
//!
//! The buckets are those of an HDR histogram at three significant digits: 1 024 per power of two, so
//! that a value read back is at most 1/1 024 (0.098 %) above the recorded one and never below it.
//! This type replaces the `hdrhistogram` crate's because a simulation records every request several
//! times, so the cost of recording counts. [`Histogram::to_hdr`] converts to the crate's histogram,
//! bucket by bucket. Mean and maximum of the crate carry the buckets' error, and its quantiles find
//! their rank in floating point; this type computes all three exactly.

use hdrhistogram::Histogram as HdrHistogram;

/// Buckets per power of two, as a power of two. Every value below twice that number has a bucket of its own.
const STEPS_BITS: u32 = 10;
/// Values that have a bucket of their own.
const EXACT: u64 = 2 << STEPS_BITS;
/// Buckets for every value: none is too large.
const BUCKETS: usize = bucket_of(u64::MAX) + 1;
/// The largest value that a log for other tools covers at least: some 18 minutes in ns.
const LOGGED_MIN: u64 = (1 << 40) - 1;
/// The largest value of a log: its readers have signed numbers.
const LOGGED_MAX: u64 = i64::MAX as u64;

/// The bucket that counts `value`.
#[inline]
const fn bucket_of(value: u64) -> usize {
    let shift = (EXACT - 1).leading_zeros() - (value | (EXACT - 1)).leading_zeros();
    ((shift as usize) << STEPS_BITS) + (value >> shift) as usize
}

/// The largest value that the bucket counts.
const fn highest_of(bucket: usize) -> u64 {
    let shift = (bucket >> STEPS_BITS).saturating_sub(1);
    let step = (bucket - (shift << STEPS_BITS)) as u64;
    // Of the last bucket the end is 2⁶⁴, which wraps to 0.
    ((step + 1) << shift).wrapping_sub(1)
}

/// Counts of values, each to one part in 1 024, over all of `u64`: no value is clipped.
///
/// # Examples
///
/// ```
/// use headway_report::Histogram;
///
/// let mut latency_ns = Histogram::new();
/// for value in 1..=1000 {
///     latency_ns.record(value);
/// }
/// assert_eq!(latency_ns.quantile(0.99), Some(990));
/// assert_eq!(latency_ns.mean(), Some(500.5));
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    counts: Box<[u64; BUCKETS]>,
    count: u64,
    sum: u128,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

impl Histogram {
    /// An empty histogram with its 440 KiB of counters: recording never allocates. The system provides the pages of a range of values
    /// when the first of them is recorded.
    pub fn new() -> Self {
        let counts = vec![0; BUCKETS].into_boxed_slice().try_into();
        Self {
            counts: counts.unwrap_or_else(|_| unreachable!("there are as many as that")),
            count: 0,
            sum: 0,
            max: 0,
        }
    }

    /// Counts `value` once.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.sum += u128::from(value);
        self.max = self.max.max(value);
    }

    /// Adds every count of `other`: the result equals one histogram that had recorded both.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(other.counts.iter()) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum += other.sum;
        self.max = self.max.max(other.max);
    }

    /// How many values were recorded.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The exact mean, or `None` when empty.
    pub fn mean(&self) -> Option<f64> {
        (!self.is_empty()).then(|| self.sum as f64 / self.count() as f64)
    }

    /// The exact largest value, or `None` when empty.
    pub fn max(&self) -> Option<u64> {
        (!self.is_empty()).then_some(self.max)
    }

    /// Whether nothing was recorded.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The nearest-rank `quantile` (0 to 1): the smallest recorded value such that at least this fraction
    /// of all values is at most as large. It is rounded up by at most 1/1 024. `None` when empty.
    ///
    /// # Panics
    ///
    /// If `quantile` lies outside 0 ..= 1 or is not a number.
    pub fn quantile(&self, quantile: f64) -> Option<u64> {
        self.value_at_rank(nearest_rank(self.count(), quantile))
    }

    /// The `rank`-th smallest value (1 = smallest), rounded up by at most 1/1 024; `None` for rank
    /// 0 and when fewer than `rank` values were recorded.
    pub fn value_at_rank(&self, rank: u64) -> Option<u64> {
        if rank == 0 || rank > self.count() {
            return None;
        }
        let mut seen = 0;
        let bucket = self.counts.iter().position(|&count| {
            seen += count;
            seen >= rank
        })?;
        Some(highest_of(bucket).min(self.max))
    }

    /// How many recorded values lie in buckets above that of `value`.
    pub fn count_above(&self, value: u64) -> u64 {
        let beyond = bucket_of(value) + 1;
        self.counts[beyond..].iter().sum()
    }

    /// The same counts as a histogram of the `hdrhistogram` crate, for formats that it writes. Values above `i64::MAX` (292 years in ns) count
    /// as that.
    pub fn to_hdr(&self) -> HdrHistogram<u64> {
        let most = self.max.clamp(LOGGED_MIN, LOGGED_MAX);
        let mut hdr = HdrHistogram::new_with_bounds(1, most, 3)
            .unwrap_or_else(|error| unreachable!("the bounds are constant and valid: {error}"));
        for (bucket, &count) in self
            .counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
        {
            hdr.saturating_record_n(highest_of(bucket).min(LOGGED_MAX), count);
        }
        hdr
    }
}

/// The nearest rank (1-based) of `quantile` among `count` ordered values: ⌈quantile · count⌉, at
/// least 1.
///
/// 0.999 · 1 000 must be rank 999 although 0.999 has no exact binary form, so the product is cut to
/// nine digits after the point before it is rounded up.
///
/// # Panics
///
/// If `quantile` lies outside 0 ..= 1 or is not a number.
pub fn nearest_rank(count: u64, quantile: f64) -> u64 {
    assert!(
        (0.0..=1.0).contains(&quantile),
        "quantile {quantile} lies outside 0 ..= 1"
    );
    const SCALE: u128 = 1_000_000_000;
    let parts = (quantile * SCALE as f64).round() as u128;
    let rank = (parts * u128::from(count)).div_ceil(SCALE);
    // The quantile is at most 1, so the rank is at most `count` and fits.
    (rank as u64).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn nearest_rank_is_exact_where_the_product_is_whole() {
        assert_eq!(nearest_rank(1000, 0.999), 999);
        assert_eq!(nearest_rank(1001, 0.999), 1000);
        assert_eq!(nearest_rank(10_000_000, 0.9999), 9_999_000);
        assert_eq!(nearest_rank(100, 0.07), 7);
        assert_eq!(nearest_rank(5, 0.0), 1);
        assert_eq!(nearest_rank(5, 1.0), 5);
    }

    #[test]
    #[should_panic(expected = "outside 0 ..= 1")]
    fn a_percentage_is_not_a_quantile() {
        nearest_rank(10, 99.0);
    }

    #[test]
    fn an_empty_histogram_answers_nothing() {
        let empty = Histogram::new();
        assert_eq!((empty.count(), empty.mean(), empty.max()), (0, None, None));
        assert_eq!(empty.quantile(0.5), None);
    }

    #[test]
    fn no_value_is_too_large_for_its_percentile() {
        const MIN_NS: u64 = 60_000_000_000;
        let mut histogram = Histogram::new();
        for value in [20 * MIN_NS, 20 * MIN_NS, 30 * MIN_NS, u64::MAX] {
            histogram.record(value);
        }
        assert_eq!(histogram.max(), Some(u64::MAX));
        let half = histogram.quantile(0.5).unwrap();
        assert!(
            (20 * MIN_NS..=20 * MIN_NS * 1025 / 1024).contains(&half),
            "{half}"
        );
        assert_eq!(histogram.quantile(1.0), Some(u64::MAX));
        assert_eq!(histogram.count_above(21 * MIN_NS), 2);
        assert_eq!(histogram.to_hdr().len(), 4);
    }

    #[test]
    fn the_last_bucket_ends_where_values_do() {
        assert_eq!(highest_of(BUCKETS - 1), u64::MAX);
    }

    proptest! {
        #[test]
        fn buckets_are_those_of_an_hdr_histogram(bits in 0_u32..=62, low in any::<u64>()) {
            let value = low & ((1 << bits) - 1);
            let mut histogram = Histogram::new();
            histogram.record(value);
            let hdr = histogram.to_hdr();
            let highest = highest_of(bucket_of(value));
            prop_assert_eq!(highest, hdr.highest_equivalent(value));
            prop_assert_eq!((hdr.count_at(value), hdr.len(), hdr.max()), (1, 1, highest));
        }

        #[test]
        fn quantiles_stay_within_one_in_1024_of_the_sorted_values(
            mut values in prop::collection::vec(any::<u64>(), 1..300),
            quantile in 0.0..=1.0_f64,
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            values.sort_unstable();
            let exact = values[nearest_rank(values.len() as u64, quantile) as usize - 1];
            let read = histogram.quantile(quantile).unwrap();
            prop_assert!(read >= exact && read - exact <= exact / 1024, "{read} for {exact}");
        }

        #[test]
        fn what_is_above_a_quantile_is_beyond_its_rank(
            values in prop::collection::vec(0..5000_u64, 1..300),
            quantile in 0.0..=1.0_f64,
        ) {
            let mut histogram = Histogram::new();
            values.iter().for_each(|&value| histogram.record(value));
            let limit = histogram.quantile(quantile).unwrap();
            let above = values.iter().filter(|&&value| bucket_of(value) > bucket_of(limit)).count() as u64;
            prop_assert_eq!(histogram.count_above(limit), above);
            prop_assert!(above <= histogram.count() - nearest_rank(histogram.count(), quantile));
        }

        #[test]
        fn merging_equals_recording_both(
            left in prop::collection::vec(any::<u64>(), 0..50),
            right in prop::collection::vec(any::<u64>(), 0..50),
        ) {
            let of = |values: &[u64]| {
                let mut histogram = Histogram::new();
                values.iter().for_each(|&value| histogram.record(value));
                histogram
            };
            let mut merged = of(&left);
            merged.merge(&of(&right));
            prop_assert_eq!(merged, of(&[left, right].concat()));
        }
    }
}
