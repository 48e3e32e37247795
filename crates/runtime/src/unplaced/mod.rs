//! Systems whose requests nobody places (Tardis): the workers help themselves from one queue that all of them share.
//!
//! The workers take turns at the receive queue, by the protocol of [`leader`](headway_sync::leader): whoever finds nothing to run, or ends a slice when
//! the last poll is old, [moves what came](arrivals) into the shared queue. A worker takes a batch from there into its own run queue, where idle
//! workers steal. It ends its requests' slices itself; what it interrupts joins the tail of the shared queue.
//!
//! A worker that is about to run a request, and leaves work behind or the lead vacant, wakes one idle worker, and that one the next.
//! So no worker sleeps while a request waits that it may take.
//!
//! Where an arbiter grants the cores, it wakes the workers too: one that finds nothing, or must leave, puts what it helped itself to back into the
//! shared queue, gives its core back, and sleeps without it.

mod arrivals;
mod common;
mod launch;
mod view;
mod worker;

pub(crate) use launch::{UnplacedSystem, launch};
