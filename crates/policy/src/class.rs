//! Classes of requests: the words that servers and racks have in common.

/// A request class ("type" in Perséphone's paper): `0..classes` are the declared ones, `classes`
/// itself is UNKNOWN, what the classifier did not recognise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash, PartialOrd, Ord)]
pub struct ClassId(pub u16);

impl ClassId {
    /// As an index.
    #[inline]
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// What is known of a class before the first request.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct ClassHint {
    /// Mean service time, ns; by it the fixed policies order the classes.
    pub mean_ns: f64,
    /// Share of the requests, 0 to 1.
    pub share: f64,
    /// Whether policies that tell longs from shorts take it as long; `None` leaves it to
    /// the mean service times.
    pub long: Option<bool>,
    /// How long a request may stay, ns; `None` where nobody said.
    pub slo_ns: Option<u64>,
}

impl ClassHint {
    /// A class of this mean service time in ns and this share of the requests.
    #[must_use]
    pub fn new(mean_ns: f64, share: f64) -> Self {
        Self {
            mean_ns,
            share,
            ..Self::default()
        }
    }

    /// Whether it helps to tell longs from shorts: it has a mean, or says which of the two it is.
    #[must_use]
    pub fn tells_length(&self) -> bool {
        self.mean_ns > 0.0 || self.long.is_some()
    }
}
