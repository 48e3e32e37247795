//! When a kthread interrupts the user-level thread that it runs.

/// A kthread's looks, one each slice, at the thread that runs on it.
///
/// Threads give way by themselves mostly: a kthread counts its scheduling points, and one without any between two looks has a thread that computes. So
/// such a thread runs for one to two slices while others wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TurnLooks {
    passes: Option<u64>,
}

impl TurnLooks {
    /// Looks: whether the thread gives way now. `passes` are the kthread's scheduling points so far, `waits` says whether another thread waits for
    /// this kthread, `must_leave` whether the kthread must give its core back.
    #[inline]
    pub fn is_over(&mut self, passes: u64, waits: bool, must_leave: bool) -> bool {
        let computes = self.passes.replace(passes) == Some(passes);
        must_leave || computes && waits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gives_way_after_a_whole_slice_if_others_wait() {
        let mut looks = TurnLooks::default();
        assert!(!looks.is_over(1, true, false), "it may have begun just now");
        assert!(looks.is_over(1, true, false));
        assert!(!looks.is_over(3, true, false), "another one runs");
        assert!(!looks.is_over(3, false, false), "nobody waits");
        assert!(looks.is_over(3, true, false));
    }

    #[test]
    fn a_kthread_that_must_leave_interrupts_at_once() {
        assert!(TurnLooks::default().is_over(1, false, true));
    }
}
