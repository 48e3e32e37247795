//! Jobs that run on for long past their slice's end without meeting a probe: counted, and their class named once.

use headway_fiber::{LateRun, LateRuns, Suspects};
use headway_machine::stderr;
use headway_machine::thread::CpuClock;

use crate::chosen::RunStart;
use crate::class_state::ClassState;
use crate::shared::SharedPool;

/// A thread's watch over the slices that are over.
pub(crate) struct StallWatch {
    suspects: Suspects<CpuClock>,
    /// Past its slice's end, a job that goes on for longer stalls, ns.
    stall_ns: u64,
    /// The thread's own time as the run began, ns, where its class is under suspicion.
    own_before_ns: Option<u64>,
}

impl StallWatch {
    /// The calling thread's.
    pub(crate) fn new(shared: &SharedPool) -> Self {
        Self {
            suspects: Suspects::new(CpuClock::of_current(), shared.classes.names.len()),
            stall_ns: shared.stall_ns,
            own_before_ns: None,
        }
    }

    #[inline]
    pub(crate) fn begin_run(&mut self, run: RunStart) {
        self.own_before_ns = if self.suspects.is_empty() {
            None
        } else {
            self.suspects.acquit(run.class.0)
        };
    }

    /// A run met a probe when its slice had been over for so long, ns.
    #[inline]
    pub(crate) fn met_probe(
        &mut self,
        shared: &SharedPool,
        run: RunStart,
        now_ns: u64,
        late_ns: u64,
    ) {
        if late_ns > self.stall_ns {
            self.judge(shared, run, now_ns, late_ns, false);
        }
    }

    /// The same of a run that ended.
    #[inline]
    pub(crate) fn ended(&mut self, shared: &SharedPool, run: RunStart, now_ns: u64, late_ns: u64) {
        if late_ns > self.stall_ns {
            self.judge(shared, run, now_ns, late_ns, true);
        }
    }

    /// Counts what the thread itself is guilty of. Of the first late run of a class that is not known: the next is measured.
    #[cold]
    fn judge(
        &mut self,
        shared: &SharedPool,
        run: RunStart,
        now_ns: u64,
        late_ns: u64,
        has_ended: bool,
    ) {
        let own_ns = self.own_before_ns;
        let own_ns = own_ns.and_then(|before_ns| self.suspects.own_time_since(before_ns));
        let late = LateRun {
            late_ns,
            ran_ns: now_ns.saturating_sub(run.from_ns),
            own_ns,
        };
        let overran_ns = late.overran_ns();
        if overran_ns.is_none_or(|overran_ns| overran_ns > self.stall_ns) {
            self.suspects.suspect(run.class.0);
        }
        let Some(overran_ns) = overran_ns.filter(|overran_ns| *overran_ns > self.stall_ns) else {
            return;
        };
        let named = {
            let mut core = shared.core.lock();
            core.class(run.class).stalled(overran_ns, has_ended)
        };
        if let Some(sentence) = named {
            // A suspended job may hold the lock of the standard library's.
            stderr::write_line(&sentence);
        }
    }
}

impl ClassState {
    /// A slice of the class stalled. Returns what to say of the class, once.
    fn stalled(&mut self, overran_ns: u64, has_ended: bool) -> Option<String> {
        let runs = &mut self.runs;
        runs.stalls += 1;
        runs.interruptions_asked += u64::from(has_ended);
        runs.longest_gap_ns = runs.longest_gap_ns.max(overran_ns);
        // A job that met a probe as its slice was over did so in time.
        let runs_so_far = LateRuns {
            late: runs.stalls,
            in_time: self.counts.done + self.probes_met,
        };
        if !runs_so_far.lack_probes() || std::mem::replace(&mut self.is_named, true) {
            return None;
        }
        Some(format!(
            "headway: jobs of class {} run on for up to {} µs after their slice and meet no probe, so nobody interrupts them there. Call checkpoint() in \
             their loops, iterate by checkpointed(), or build them with Headway's pass (`cargo headway build`); or declare the class uninterrupted()",
            self.name,
            runs.longest_gap_ns / 1_000
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::class_state::BuiltClass;

    #[test]
    fn a_class_is_named_once_after_enough_stalls() {
        let mut class = ClassState::new(BuiltClass::open("report"));
        let said: Vec<Option<String>> = (1..=20)
            .map(|stall| class.stalled(stall * 100_000, stall % 2 == 0))
            .collect();
        let named: Vec<usize> = (0..20).filter(|&at| said[at].is_some()).collect();
        assert_eq!(named, [LateRuns::ENOUGH as usize - 1]);
        let sentence = said[named[0]].as_deref().unwrap();
        assert!(
            sentence.contains("class report") && sentence.contains("800 µs"),
            "{sentence}"
        );
        let runs = &class.runs;
        assert_eq!(
            (runs.stalls, runs.interruptions_asked, runs.longest_gap_ns),
            (20, 10, 2_000_000)
        );
    }

    #[test]
    fn a_class_whose_jobs_meet_probes_is_named_only_where_it_often_does_not() {
        let mut class = ClassState::new(BuiltClass::open("report"));
        class.probes_met = 500;
        class.counts.done = 501;
        let said: Vec<bool> = (0..12)
            .map(|_| class.stalled(100_000, false).is_some())
            .collect();
        // Ten stalls in a thousand are fewer than one in a hundred still.
        let named: Vec<usize> = (0..12).filter(|&at| said[at]).collect();
        assert_eq!(named, [10]);
    }
}
