//! The handlers of the world: they take virtual time, meet probes, and say where they are long.

use std::sync::{Arc, OnceLock};

use headway_fiber::{NoPreempt, checkpoint_at, suspensions};
use headway_runtime::{Call, Observer, Service};

use crate::network::{FirstRun, HandlerRun, PANIC, SaidLong, SharedLog};
use crate::scenario::HIDDEN_LONG_NS;
use crate::scheduler::{draw, meet_signal, now_ns, spend, this_thread};

/// Takes the time that each request asks for.
pub(crate) struct Worker {
    pub(crate) log: SharedLog,
    /// The longest way between two probes, ns.
    pub(crate) probe_gap_ns: u64,
    /// Whether handlers meet probes at all.
    pub(crate) probes: bool,
    /// One in so many handlers panics; none where it is 0.
    pub(crate) panics: u64,
    /// Whether handlers are interrupted in their long parts only.
    pub(crate) by_feedback: bool,
    /// Whether handlers have long parts and no-preempt sections.
    pub(crate) sections: bool,
    /// Tells the plan in force, where the policy has one; the server's owner puts it there.
    pub(crate) plans: Arc<OnceLock<Observer>>,
}

/// Whether a part of a handler may be interrupted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum HandlerPart {
    MayYield,
    /// The same, and the handler has said that it is long.
    IsHeard,
    MustNotYield,
}

impl Service for Worker {
    fn handle(&self, call: &mut Call<'_>) {
        let body = call.payload().first_chunk();
        let delivery = u32::from_be_bytes(*body.expect("the network wrote it"));
        let begun_ns = now_ns();
        let first_run = FirstRun {
            class: call.class().0,
            worker: call.worker().0,
            revision: self.see_plan(),
        };
        self.log.fate(delivery, |fate| {
            fate.begun_ns.push(begun_ns);
            fate.first_run = Some(first_run);
        });
        let said = if self.sections {
            self.work_in_parts(call, delivery)
        } else {
            self.work(delivery, call.service_hint_ns(), self.outside());
            SaidLong::default()
        };
        let panics = self.panics > 0 && draw(self.panics) == 0;
        self.log.fate(delivery, |fate| {
            // A panic ends the parts that are open.
            let unended = if panics { 0 } else { said.unended };
            fate.said_long = Some(SaidLong { unended, ..said });
        });
        assert!(!panics, "{PANIC}");
        call.reply(b"done");
    }
}

impl Worker {
    /// The revision of the plan in force, which is noted; 0 without one.
    fn see_plan(&self) -> u64 {
        let Some(stats) = self.plans.get().map(Observer::stats) else {
            return 0;
        };
        if let Some(plan) = stats.plan {
            let plans = &mut self.log.lock().plans;
            if plans
                .last()
                .is_none_or(|last| last.0 < stats.plan_revisions)
            {
                plans.push((stats.plan_revisions, plan));
            }
        }
        stats.plan_revisions
    }

    /// What handlers do outside of long parts.
    fn outside(&self) -> HandlerPart {
        if self.by_feedback {
            HandlerPart::MustNotYield
        } else {
            HandlerPart::MayYield
        }
    }

    /// A short part, then a long one with a section in it, then a short one; some handlers begin or end one too many.
    fn work_in_parts(&self, call: &mut Call<'_>, delivery: u32) -> SaidLong {
        let all_ns = call.service_hint_ns();
        let first_ns = draw(all_ns / 4 + 1);
        let last_ns = draw(all_ns / 4 + 1);
        let long_ns = all_ns - first_ns - last_ns;
        self.work(delivery, first_ns, self.outside());
        let is_hidden = call.class().0 == 0 && all_ns >= HIDDEN_LONG_NS;
        let says_long = draw(4) > 0 || is_hidden;
        if says_long {
            call.long(|call| {
                let section_ns = draw(long_ns / 2 + 1);
                self.work(delivery, long_ns - section_ns, HandlerPart::IsHeard);
                // A part within a part changes nothing.
                call.long(|_| {
                    let section = NoPreempt::enter();
                    self.work(delivery, section_ns, HandlerPart::MustNotYield);
                    drop(section);
                });
            });
        } else {
            self.work(delivery, long_ns, self.outside());
        }
        let last = if says_long && !self.by_feedback {
            HandlerPart::IsHeard
        } else {
            self.outside()
        };
        self.work(delivery, last_ns, last);
        let mistake = draw(16);
        if mistake == 0 {
            call.feedback_start();
        }
        if mistake == 1 {
            call.feedback_finished();
        }
        SaidLong {
            begun: u64::from(says_long || mistake == 0),
            unended: u64::from(mistake == 0),
            unbegun: u64::from(mistake == 1),
        }
    }

    fn work(&self, delivery: u32, for_ns: u64, part: HandlerPart) {
        let suspensions_before = suspensions();
        let mut left_ns = for_ns;
        while left_ns > 0 {
            let step_ns = left_ns.min(draw(self.probe_gap_ns) + 1);
            let from_ns = now_ns();
            let to_ns = spend(step_ns);
            self.log.lock().runs.push(HandlerRun {
                thread: this_thread(),
                delivery,
                from_ns,
                to_ns,
                is_heard: part == HandlerPart::IsHeard,
                suspensions: suspensions(),
            });
            left_ns -= step_ns;
            meet_signal();
            if self.probes {
                checkpoint_at(now_ns());
            }
        }
        if part == HandlerPart::MustNotYield && suspensions() != suspensions_before {
            self.log
                .fate(delivery, |fate| fate.interrupted_in_section = true);
        }
    }
}
