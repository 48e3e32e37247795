//! The thread that sends suspended requests home while a worker sleeps in the middle of a request: see [`rescue`](crate::request::rescue).

use std::sync::Arc;
use std::time::Duration;

use headway_fiber::{TurnWatch, TurnsSeen};
use headway_policy::MAX_WORKERS;

use super::control::{ServerControl, ServerPhase};
use crate::request::rescue::Rescue;
use crate::request::suspended::SuspendedRequests;

/// Between two looks while requests are being suspended. A worker sleeps for one to two of them before it is noticed.
const LOOK: Duration = Duration::from_micros(400);

/// Looks without a suspension and without a worker that sleeps until they become rarer.
const LOOKS_BEFORE_RARE: u32 = 50;

/// Between two rare looks, while workers run requests.
const RARE_LOOK: Duration = Duration::from_millis(20);

/// Between two rare looks while no worker does: the next suspension wakes the thread.
const REST: Duration = Duration::from_secs(1);

/// What the thread is made of.
pub(crate) struct Rescuer {
    pub(crate) rescue: Arc<Rescue>,
    pub(crate) suspended: Arc<SuspendedRequests>,
    pub(crate) control: Arc<ServerControl>,
}

impl Rescuer {
    /// Looks after the workers until the server has stopped.
    pub(crate) fn run(self) {
        let waits = Arc::clone(&self.control);
        self.rescue
            .set_wake(Box::new(move || waits.notify_waiting()));
        let mut watch = TurnWatch::for_workers(MAX_WORKERS);
        let mut quiet_looks = 0;
        while !self.is_over() {
            let was_suspended = self.rescue.alert().take();
            let seen = self.rescue.look(&mut watch);
            let beside_wanted = watch.most_home_beside_wanted(self.rescue.was_wanted_here());
            let most = match seen {
                TurnsSeen::Asleep => watch.most_home(),
                TurnsSeen::Idle | TurnsSeen::Running => beside_wanted,
            };
            if most > 0 {
                self.suspended
                    .send_home(most, |class| self.rescue.count(class));
            }
            let is_quiet = !was_suspended && seen != TurnsSeen::Asleep;
            quiet_looks = if is_quiet { quiet_looks + 1 } else { 0 };
            self.pause(seen, quiet_looks > LOOKS_BEFORE_RARE);
        }
    }

    /// Waits for the next look.
    fn pause(&self, seen: TurnsSeen, is_rare: bool) {
        let is_ending = self.control.phase() >= ServerPhase::Abandoning;
        let pause = match seen {
            _ if !is_rare || is_ending => LOOK,
            TurnsSeen::Idle => REST,
            _ => RARE_LOOK,
        };
        let alert = self.rescue.alert();
        alert.look_often(!is_rare);
        self.control
            .wait_past_for(ServerPhase::Abandoning, pause, || {
                is_rare && alert.must_look()
            });
    }

    /// Whether no worker is left to look after: after an abandoned drain they end one by one.
    fn is_over(&self) -> bool {
        match self.control.phase() {
            ServerPhase::Stopped => true,
            ServerPhase::Abandoning => self.rescue.all_have_left(),
            ServerPhase::Running | ServerPhase::Draining => false,
        }
    }
}
