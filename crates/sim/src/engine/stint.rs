//! A dispatcher that also runs requests: its slices on requests of its own (Concord § 3.3).

use super::worker::OnDispatcher;
use super::{Delayed, Engine};
use crate::server::Sink;
use headway_policy::server::role::{DispatcherSlice, Ingress, Local, Monitor};
use headway_report::schedule::Runner;

impl<I: Ingress, L: Local, M: Monitor> Engine<I, L, M> {
    /// The request that the dispatcher itself is running, under a policy whose dispatcher works.
    #[inline]
    pub(super) fn working(&self) -> Option<OnDispatcher> {
        self.stint.filter(|_| I::WORKS)
    }

    /// Whether the dispatcher has no other work at this time.
    pub(super) fn dispatcher_is_idle(&self) -> bool {
        self.stint.is_none()
            && self.dispatcher_free_ns <= self.now_ns
            && self.delayed_ns() > self.now_ns
    }

    pub(super) fn dispatcher_works(&mut self) {
        let Some(DispatcherSlice { job, slice_ns }) = self.ingress.work(self.now_ns) else {
            return;
        };
        let stretch_ns = slice_ns.min(self.requests.get(job).left_ns());
        let until_ns = self.now_ns + self.costs.on_dispatcher_ns(stretch_ns);
        self.dispatcher_free_ns = until_ns;
        self.stint = Some(OnDispatcher {
            job,
            stretch_ns,
            until_ns,
        });
        self.delay(until_ns, Delayed::StintOver);
    }

    pub(super) fn stint_over(&mut self, sink: &mut impl Sink) {
        let Some(stint) = self.stint.take() else {
            return;
        };
        self.work.dispatcher_ns += stint.stretch_ns;
        let request = self.requests.get_mut(stint.job);
        request.attained_ns += stint.stretch_ns;
        let (done, needs_ns) = (request.left_ns() == 0, request.needs_ns);
        let took_ns = self.costs.on_dispatcher_ns(stint.stretch_ns);
        let from_ns = self.now_ns.saturating_sub(took_ns);
        self.note(stint.job, Runner::Dispatcher(0), from_ns, done);
        let job = self.job(stint.job);
        self.ingress
            .worked(self.now_ns, job, done.then_some(needs_ns));
        if done {
            sink.finished(self.now_ns, &self.requests.get(stint.job).request);
            self.requests.remove(stint.job);
            self.note_plan(sink);
        }
    }
}
