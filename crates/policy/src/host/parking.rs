//! When a kthread that finds nothing gives its core back (Shenango § 5).

/// How long a kthread goes on looking for work before it parks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// ns; "a couple of microseconds" in the paper, hence 2 µs by default.
    pub spin_ns: u64,
}

impl Default for Patience {
    fn default() -> Self {
        Self { spin_ns: 2_000 }
    }
}

/// Since when a kthread has found nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Idleness {
    since_ns: Option<u64>,
}

impl Idleness {
    /// It found work, or was woken anew.
    #[inline]
    pub fn found_work(&mut self) {
        self.since_ns = None;
    }

    /// It looked everywhere and found nothing. `None`: it parks. `Some`: it goes on looking, until
    /// then at most.
    #[inline]
    pub fn found_nothing(&mut self, now_ns: u64, patience: Patience) -> Option<u64> {
        let until_ns = *self.since_ns.get_or_insert(now_ns) + patience.spin_ns;
        (now_ns < until_ns).then_some(until_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_parks_after_its_patience_and_work_restores_it() {
        let patience = Patience { spin_ns: 2_000 };
        let mut idleness = Idleness::default();
        assert_eq!(idleness.found_nothing(10_000, patience), Some(12_000));
        assert_eq!(idleness.found_nothing(11_999, patience), Some(12_000));
        idleness.found_work();
        assert_eq!(idleness.found_nothing(11_999, patience), Some(13_999));
        assert_eq!(idleness.found_nothing(13_999, patience), None);
    }

    #[test]
    fn without_patience_it_parks_at_once() {
        let mut idleness = Idleness::default();
        assert_eq!(idleness.found_nothing(0, Patience { spin_ns: 0 }), None);
    }
}
