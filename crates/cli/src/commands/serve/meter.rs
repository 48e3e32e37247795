//! `--stats`: prints a server's statistics at intervals, one line per class.

use crate::commands::sim::ranges;
use headway_policy::{BitSet, ClassId, Plan};
use headway_report::{Histogram, format};
use headway_runtime::{ClassStats, FeedbackStats, JournalEntry, Stats};
use std::time::Duration;

/// The counts since the last lines.
pub(super) struct Meter {
    last: Stats,
    /// Times in the server since the last lines, ns, by class.
    sojourns_ns: Vec<Histogram>,
    interrupts: bool,
}

impl Meter {
    /// For `classes` with UNKNOWN; `interrupts` says whether the policy does.
    pub(super) fn new(classes: usize, interrupts: bool) -> Self {
        Self {
            last: Stats::default(),
            sojourns_ns: (0..classes).map(|_| Histogram::new()).collect(),
            interrupts,
        }
    }

    pub(super) fn add(&mut self, entry: &JournalEntry) {
        self.sojourns_ns[usize::from(entry.class)].record(entry.sojourn_ns);
    }

    /// The lines for the time since the last ones. UNKNOWN has a line after its first request.
    pub(super) fn lines(
        &mut self,
        stats: Stats,
        since_start: Duration,
        span: Duration,
    ) -> Vec<String> {
        let seconds = span.as_secs_f64().max(1e-9);
        let at = format!("{:.1}s", since_start.as_secs_f64());
        let unknown = stats.classes.len() - 1;
        let classes = stats.classes.iter().enumerate();
        let shown = classes.filter(|(index, class)| *index < unknown || class.accepted > 0);
        let lines: Vec<String> = shown
            .map(|(index, class)| {
                let line = self.class_line(index, class, seconds);
                let workers = stats.plan.as_ref().filter(|_| index < unknown);
                let workers = workers.map_or(String::new(), |plan| reservation(plan, index));
                format!("{at} {line}{workers}")
            })
            .collect();
        self.sojourns_ns.fill_with(Histogram::new);
        self.last = stats;
        lines
    }

    fn class_line(&self, index: usize, class: &ClassStats, seconds: f64) -> String {
        let before = self.last.classes.get(index).cloned().unwrap_or_default();
        let time = |quantile: f64| {
            let ns = self.sojourns_ns[index].quantile(quantile);
            ns.map_or("–".into(), |ns| format::duration_us(ns as f64 / 1e3))
        };
        let rate = |now: u64, before: u64| format::metric((now - before) as f64 / seconds);
        let interrupted = if self.interrupts {
            let asked = rate(class.preemptions_asked, before.preemptions_asked);
            let honoured = rate(class.preemptions, before.preemptions);
            format!(", {honoured} of {asked} interruptions/s honoured")
        } else {
            String::new()
        };
        let misused = misused(&class.feedback.since(&before.feedback));
        format!(
            "{}: {}/s, {} queued or running, {} shed, p50 {}, p99 {}{interrupted}{misused}",
            class.name,
            rate(class.answered, before.answered),
            class.pending(),
            class.shed - before.shed,
            time(0.5),
            time(0.99),
        )
    }
}

/// Misuses by handlers of the calls that declare long parts; empty if there are none.
fn misused(feedback: &FeedbackStats) -> String {
    if !feedback.is_misused() {
        return String::new();
    }
    format!(
        ", long parts: {} in a class of shorts, {} never ended, {} never begun",
        feedback.from_short, feedback.unended, feedback.unbegun
    )
}

/// The workers that may run a class, while the policy reserves any.
fn reservation(plan: &Plan, class: usize) -> String {
    if plan.groups.is_empty() {
        return ", nothing reserved".into();
    }
    let class = ClassId(class as u16);
    let of = |workers: &BitSet| ranges(&workers.iter().collect::<Vec<_>>());
    format!(
        ", workers {}, may steal {}",
        of(plan.reserved(class)),
        of(plan.stealable(class))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(accepted: u64, answered: u64, shed: u64) -> Stats {
        let class = |name: &str, accepted, answered, shed| ClassStats {
            name: name.into(),
            accepted,
            answered,
            shed,
            preemptions_asked: 3 * answered,
            preemptions: 2 * answered,
            feedback: FeedbackStats {
                said_long: answered,
                unended: shed,
                ..FeedbackStats::default()
            },
            ..ClassStats::default()
        };
        Stats {
            classes: vec![
                class("short", accepted, answered, shed),
                class("unknown", 0, 0, 0),
            ],
            ..Stats::default()
        }
    }

    #[test]
    fn lines_tell_of_the_time_since_the_last_ones() {
        let mut meter = Meter::new(2, true);
        let second = Duration::from_secs(1);
        let sojourn = |sojourn_ns| JournalEntry {
            arrived_ns: 0,
            class: 0,
            cpu_ns: 1,
            sojourn_ns,
        };
        meter.add(&sojourn(1_000_000));
        let lines = meter.lines(stats(110, 100, 3), second, second);
        assert_eq!(lines.len(), 1, "nothing unknown came: {lines:?}");
        for part in [
            "1.0s short: 100/s",
            "7 queued or running",
            "3 shed",
            "p99 1.00 ms",
        ] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
        meter.add(&sojourn(2_000));
        let lines = meter.lines(stats(200, 150, 5), 3 * second, 2 * second);
        for part in [
            "3.0s short: 25",
            "45 queued",
            "2 shed",
            "p50 2.00 µs, p99 2.00 µs",
            "50.0 of 75.0 interruptions/s honoured",
            "long parts: 0 in a class of shorts, 2 never ended, 0 never begun",
        ] {
            assert!(lines[0].contains(part), "{part}: {lines:?}");
        }
        let lines = meter.lines(stats(300, 250, 5), 4 * second, second);
        assert!(!lines[0].contains("long parts"), "none since: {lines:?}");
    }
}
