//! One request: how it comes in, how a handler runs it, in one piece or in slices, and how it is answered or refused.
//!
//! A thread [takes it in](intake). An [executor] calls the [handler](service) and sends the response. Where requests are interrupted, they run
//! on [fibers], one [assignment] after another; [`run_slice`] is the part of a slice that all engines have in common.
//!
//! A request has one name for each of its sides:
//!
//! | name | type | what it is |
//! |---|---|---|
//! | `slot` | `SlotId` | the token of its buffer: the right to use it, moved and never copied |
//! | `buffer` | `Slot` | the datagram, and later the response |
//! | `request` | `RequestWord`, `TakenRequest` | the token on its way, and whether the request is suspended |
//! | `id`, `job` | `JobId`, `Job` | the request as policies see it, by number and with its class and times |
//! | `running` | `RunningRequest` | the request that this thread runs on a fiber |
//! | `place` | `Option<Suspended>` | where the fiber of a request lies that has begun, whether it runs or is suspended |

pub(crate) mod assignment;
pub(crate) mod classifier;
pub(crate) mod executor;
pub(crate) mod fibers;
pub(crate) mod idle_fibers;
pub(crate) mod intake;
pub(crate) mod lateness;
pub(crate) mod overflow;
pub(crate) mod panics;
pub(crate) mod refusal;
pub(crate) mod rescue;
pub(crate) mod run_slice;
pub(crate) mod sayers;
pub(crate) mod server_queue;
pub(crate) mod service;
pub(crate) mod shared_fibers;
pub(crate) mod slice;
pub(crate) mod suspended;
pub(crate) mod suspended_stacks;
pub(crate) mod turn;
pub(crate) mod verdict;
