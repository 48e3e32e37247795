//! What a server writes down while it serves: counts, stalls of the machine, one entry per request, requests that do not yield.
//!
//! Each thread writes its own lines, and anyone reads them. Nothing here decides.

mod closing_line;
pub(crate) mod journal;
pub(crate) mod overruns;
pub(crate) mod own_time;
pub(crate) mod stall;
pub(crate) mod tally;
