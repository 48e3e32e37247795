//! When a kthread that finds nothing gives its core back (Shenango § 5).

/// How long a kthread goes on looking for work before it parks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// ns; "a couple of microseconds" in the paper, hence 2 µs by default.
    pub spin_ns: u64,
}

impl Patience {
    /// The patience on this core: none where the daemon that brings the packets runs too. It only runs when the kthread does not, so nothing can come while
    /// the kthread spins. The paper's daemon has a core of its own.
    #[inline]
    #[must_use]
    pub fn on_core(self, is_daemons: bool) -> Self {
        if is_daemons {
            Self { spin_ns: 0 }
        } else {
            self
        }
    }
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
    fn on_the_core_of_the_daemon_it_parks_at_once() {
        let patience = Patience { spin_ns: 2_000 };
        let mut idleness = Idleness::default();
        assert_eq!(idleness.found_nothing(0, patience.on_core(true)), None);
        idleness.found_work();
        let until_ns = idleness.found_nothing(0, patience.on_core(false));
        assert_eq!(until_ns, Some(2_000));
    }
}
