//! A server that is all that its process does, in one call.

use headway_machine::stderr::write_line as say;
use headway_ops::doors::{OpenDoors, StatusDoors};
use headway_ops::place::SocketKind;
use headway_ops::signals;
use headway_ops::socket::ControlPlace;

use super::chosen::door_name;
use crate::error::RunError;
use crate::server::Server;
use crate::stats::tally::Stats;

impl Server {
    /// Serves until SIGTERM or SIGINT, then stops as [`shutdown`](Self::shutdown) does, within the time of [`Builder::drain`](crate::Builder::drain): what was
    /// accepted is answered. A second signal ends the process at once; SIGHUP, SIGUSR1 and SIGUSR2 are ignored with a sentence. Says on standard error where it
    /// listens and, at the end, its counts in one line, which are also returned.
    ///
    /// Unless the builder chose [another place](crate::Builder::control), `headway ctl` and `headway top` find the server by its port. Where that socket cannot
    /// be had, a line says why, and it serves all the same.
    ///
    /// # Errors
    /// [`RunError`]: signals cannot be watched, or the stop failed.
    pub fn run(self) -> Result<Stats, RunError> {
        let stopper = self.stopper();
        self.run_leaving(move || stopper.request_stop())
    }

    /// As [`run`](Self::run), for a server that somebody has to know leaves before it stops, such as a rack's agent: the first signal calls `leave`,
    /// which sees to it that [`Stopper::request_stop`](crate::Stopper::request_stop) is called.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn run_leaving(self, leave: impl Fn() + Send + 'static) -> Result<Stats, RunError> {
        signals::heed(leave).map_err(RunError::Signals)?;
        if let Some(addr) = self.local_addr() {
            say(&format!("listening on {addr}"));
        }
        let usual = self.usual_doors();
        if let Some(path) = self.doors.open.control().or(usual.control()) {
            say(&format!("headway ctl finds it at {}", path.display()));
        }
        self.wait();
        let drain = self.drain();
        let stats = self.shutdown(drain)?;
        say(&stats.to_string());
        Ok(stats)
    }

    /// Answers where `headway ctl` looks, unless the builder chose.
    fn usual_doors(&self) -> OpenDoors {
        if self.doors.chooses_control {
            return OpenDoors::default();
        }
        let usual = StatusDoors {
            control: ControlPlace::Usual,
            metrics: None,
        };
        let bound = usual.bind(SocketKind::Server, &door_name(self.addr));
        bound
            .and_then(|bound| bound.answer(&self.doors.subject))
            .unwrap_or_else(|why| {
                say(&format!("headway ctl does not find this server: {why}"));
                OpenDoors::default()
            })
    }
}
