//! What every policy of a server promises: traffic is played to it as an engine would, and every step is checked.
//!
//! The tests of `headway-policy` play it to each policy of the registry, the Python package to policies written in Python. So both keep one contract.
//!
//! | file | the policies | promises |
//! |---|---|---|
//! | [`dispatcher`] | whose ingress a dispatcher carries out | nothing is lost or handed out twice, to workers that are there and have room; only the full queue sheds; a plan is kept to |
//! | [`workers`] | whose requests lie in queues at once, placed by the network or by nobody | nothing is lost or run twice; a worker that looks finds what it promises to find |

pub mod dispatcher;
mod plain_queues;
pub mod workers;

pub use plain_queues::PlainQueues;
