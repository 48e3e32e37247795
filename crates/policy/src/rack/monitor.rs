//! What the switch's registers say of each type (Pallas § 4.4, appendix C).

use crate::ClassId;
use alloc::vec;
use alloc::vec::Vec;

/// One type's registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct DemandReading {
    /// Requests since the last reset.
    pub count: u64,
    /// Moving average of the execution time, ns; 0 before the first response.
    pub execution_ns: u64,
}

/// Counts requests per type and averages their execution times, exponentially with a factor of 1/8: a shift, since a
/// switch cannot divide.
#[derive(Clone, Debug)]
pub struct DemandMonitor {
    readings: Vec<DemandReading>,
    overflowed: u64,
}

impl DemandMonitor {
    /// Over so many types.
    #[must_use]
    pub fn new(classes: usize) -> Self {
        Self {
            readings: vec![DemandReading::default(); classes],
            overflowed: 0,
        }
    }

    /// A client's request passed.
    #[inline]
    pub fn arrived(&mut self, class: ClassId) {
        self.readings[class.index()].count += 1;
    }

    /// A response passed. One without execution time (its request was shed) says nothing.
    #[inline]
    pub fn finished(&mut self, class: ClassId, execution_ns: u64) {
        if execution_ns == 0 {
            return;
        }
        let average = &mut self.readings[class.index()].execution_ns;
        *average = match *average {
            0 => execution_ns,
            before => before - (before >> 3) + (execution_ns >> 3),
        };
    }

    /// A request went to a server without cores of its group.
    #[inline]
    pub fn overflowed(&mut self) {
        self.overflowed += 1;
    }

    /// Requests that went to servers without cores of their group, since the last reset.
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.overflowed
    }

    /// The registers, by type.
    #[must_use]
    pub fn readings(&self) -> &[DemandReading] {
        &self.readings
    }

    /// Begins a new interval: counts start over, averages go on.
    pub fn reset(&mut self) {
        self.readings
            .iter_mut()
            .for_each(|reading| reading.count = 0);
        self.overflowed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_reset_and_averages_are_not() {
        let mut monitor = DemandMonitor::new(2);
        (0..5).for_each(|_| monitor.arrived(ClassId(1)));
        monitor.finished(ClassId(1), 8_000);
        assert_eq!(monitor.readings()[1].count, 5);
        monitor.reset();
        let after = DemandReading {
            count: 0,
            execution_ns: 8_000,
        };
        assert_eq!(monitor.readings(), [DemandReading::default(), after]);
    }

    #[test]
    fn an_average_moves_an_eighth_of_the_way() {
        let mut monitor = DemandMonitor::new(1);
        monitor.finished(ClassId(0), 8_000);
        monitor.finished(ClassId(0), 16_000);
        assert_eq!(monitor.readings()[0].execution_ns, 9_000);
        (0..200).for_each(|_| monitor.finished(ClassId(0), 16_000));
        assert!(monitor.readings()[0].execution_ns.abs_diff(16_000) < 8);
    }
}
