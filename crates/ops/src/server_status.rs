//! The fields of a server's status. They are stable: `docs/json.md` lists them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::status::TimesStatus;

/// A server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct LiveServerStatus {
    /// [`SERVER`](crate::status::SERVER).
    pub kind: String,
    /// The process.
    pub pid: u32,
    /// Of Headway.
    pub version: String,
    /// Where it listens: `udp://ADDRESS:PORT`; null in a world without addresses.
    pub listen: Option<String>,
    /// The policy's name.
    pub policy: String,
    /// The policy with all parameters in force.
    pub spec: String,
    /// The same parameters by key.
    pub params: BTreeMap<String, String>,
    /// The keys that may change while it serves.
    pub changeable: Vec<String>,
    /// How often they did.
    pub changes: u64,
    /// Who is the dispatcher: `inline`, `dedicated`, `steered`, or `shared`.
    pub layout: String,
    /// How long it has been there, s.
    pub uptime_s: f64,
    /// Since when these parameters are in force, s.
    pub in_force_s: f64,
    /// Datagrams taken from the datapath.
    pub received: u64,
    /// Requests run to their end: those that the closing line calls served.
    pub answered: u64,
    /// Requests refused as shed.
    pub shed: u64,
    /// Datagrams larger than a buffer, refused. Servers of older versions do not say.
    #[serde(default)]
    pub too_large: u64,
    /// Requests refused during the stop.
    #[serde(default)]
    pub refused: u64,
    /// Datagrams that were no request, dropped.
    #[serde(default)]
    pub malformed: u64,
    /// Requests handed back to a rack's switch.
    #[serde(default)]
    pub handed_back: u64,
    /// Requests given up at the end of the stop.
    #[serde(default)]
    pub abandoned: u64,
    /// Responses that the system did not take, of requests in any of the counts above.
    #[serde(default)]
    pub unsent: u64,
    /// Datagrams that the kernel dropped.
    pub kernel_drops: u64,
    /// By worker.
    pub workers: Vec<ServerWorkerStatus>,
    /// The dispatchers that run requests themselves.
    pub dispatchers: Vec<ServerWorkerStatus>,
    /// The queues of interrupted requests that all workers share.
    pub wait_queues: Vec<WaitQueueStatus>,
    /// By class; the last one is `unknown`.
    pub classes: Vec<ServerClassStatus>,
    /// How often the policy revised its plan.
    pub plan_revisions: u64,
    /// The groups of the plan in force; null without a plan.
    pub reservation: Option<Vec<ReservationStatus>>,
}

/// A worker, or a dispatcher that runs requests.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ServerWorkerStatus {
    /// Its number, or `dispatcher N`.
    pub worker: Value,
    /// Requests that ended there.
    pub answered: u64,
    /// Requests that it began, of its own queue.
    pub own: u64,
    /// Requests that it took from another one's queue.
    pub stolen: u64,
    /// Interrupted requests that it went on with.
    pub resumed: u64,
    /// Requests that it interrupted.
    pub preempted: u64,
    /// Slices that ended and whose request went on at once.
    pub renewed: u64,
    /// Time that handlers took there, ns.
    pub cpu_ns: u64,
    /// Requests that wait there; null where a dispatcher places them.
    pub queued: Option<usize>,
    /// Requests that could not yield, by the section that prevented it.
    pub held: HeldStatus,
}

/// Requests that were asked to yield in a section, by its kind.
pub type HeldStatus = BTreeMap<String, HeldSectionStatus>;

/// Requests that one kind of section kept from yielding.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct HeldSectionStatus {
    /// How many.
    pub count: u64,
    /// For how long in all, ns.
    pub ns: u64,
    /// Those that yielded at the section's end.
    pub yields: u64,
}

/// A queue of interrupted requests.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct WaitQueueStatus {
    /// Requests that wait there.
    pub waiting: usize,
    /// Whether the policy finds it congested.
    pub congested: bool,
}

/// A class of a server.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct ServerClassStatus {
    /// Its name.
    pub class: String,
    /// Requests taken in.
    pub accepted: u64,
    /// Requests run to their end.
    pub answered: u64,
    /// Requests refused as shed: the sum of the next four.
    pub shed: u64,
    /// Since the queue of the class was full.
    pub shed_queue_full: u64,
    /// Since there was no buffer to keep it in.
    pub shed_no_buffer: u64,
    /// Since there was no stack to run it on.
    pub shed_no_stack: u64,
    /// Clones that could not start at once, behind a rack's switch.
    pub shed_clones: u64,
    /// Requests that wait or run.
    pub pending: u64,
    /// Those that no worker took up yet.
    pub queued: u64,
    /// Those that run, or were interrupted.
    pub running: u64,
    /// The mean time of a handler, µs; null before the first.
    pub mean_us: Option<f64>,
    /// Interruptions that the policy asked for.
    pub asked: u64,
    /// Those at which the request made way.
    pub preempted: u64,
    /// Slices that ended and whose request went on at once.
    pub renewed: u64,
    /// Interrupted requests that went on.
    pub resumed: u64,
    /// Requests that ended long after they were to yield.
    pub overruns: u64,
    /// The longest such time, µs.
    pub longest_gap_us: f64,
    /// Interrupted requests that went on in threads of their own.
    pub rescued: u64,
    /// Requests for which no thread could lend its state.
    pub without_thread: u64,
    /// Times from arrival to the first slice.
    pub wait: TimesStatus,
    /// What handlers took.
    pub service: TimesStatus,
    /// Requests that could not yield, by the section that prevented it.
    pub held: HeldStatus,
    /// What its handlers said of long parts.
    pub feedback: FeedbackStatus,
}

/// The long parts that handlers declared, and their misuses of these calls.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct FeedbackStatus {
    /// Requests that began one.
    pub said_long: u64,
    /// The same, in a class that is short by its hints.
    pub from_short: u64,
    /// Long parts that were never ended.
    pub unended: u64,
    /// Ends without a beginning.
    pub unbegun: u64,
}

/// A group of a plan.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReservationStatus {
    /// Its classes, by name.
    pub classes: Vec<String>,
    /// The workers that are its own.
    pub reserved: Vec<usize>,
    /// The workers that it may use too.
    pub stealable: Vec<usize>,
}
