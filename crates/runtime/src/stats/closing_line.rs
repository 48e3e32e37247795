//! A server's counts in one line, as it says them when it ends.

use std::fmt;

use crate::stats::tally::Stats;

/// `answered` counts what a client counts under that name: responses, whatever their status.
impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "received {}, answered {} (served {}, shed {}, too large {}, refused {}), unsent {}, malformed {}, abandoned {}, panics {}, \
             dropped by the kernel {}",
            self.received,
            self.responses(),
            self.answered,
            self.shed,
            self.too_large,
            self.refused_draining,
            self.unsent,
            self.malformed,
            self.abandoned,
            self.panics,
            self.kernel_drops,
        )?;
        // Behind a rack's switch, where requests were handed back to it.
        match self.handed_back {
            0 => Ok(()),
            requests => write!(f, ", handed back {requests}"),
        }
    }
}
