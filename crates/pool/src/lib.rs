//! A pool of threads under Headway's policies: submit a closure, await its result.
//!
//! ```
//! use headway_pool::{ClassOptions, Pool};
//!
//! let pool = Pool::builder()
//!     .workers(2)
//!     .class("point", ClassOptions::new())
//!     .class("report", ClassOptions::new())
//!     .build()?;
//! let rows = pool.submit("point", || vec![1, 2, 3]); // a future; no executor is assumed
//! assert_eq!(rows.wait()?.len(), 3);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`Pool`] says what a program does with it, [`PoolBuilder`] and [`ClassOptions`] what can be chosen. `docs/pool.md` is the guide.
//!
//! # How it is made
//!
//! | file | what is there |
//! |---|---|
//! | `core` | what waits, what runs, what became of each job: one lock owns it, without threads or clock |
//! | `decisions` | a policy of the registry behind one interface, and the queues between its roles |
//! | `class_state`, `class_queue` | a class; its jobs that wait, of which a policy's token stands for the oldest |
//! | `job`, `spawned` | a job's closure or future, and its result |
//! | `layout`, `dispatcher` | who is the dispatcher; the thread of one that has its own |
//! | `thread_table`, `worker` | who is parked and whom to wake; the loop of a thread |
//! | `slice`, `turn` | one slice of a job, on its thread's stack or on a fiber |
//! | `owning`, `rescue`, `rescuer` | fibers with a thread's state, and the workers that wait for what is suspended on one |
//! | `plain` | fibers that share their thread's state |
//! | `poller` | what workers call between slices and while they have no job |
//! | `idle_wait` | what a thread does while it has no job |
//! | `stalls` | jobs that meet no probe |
//! | `stats`, `outside` | what became of the jobs; who asks about it from outside |
//! | `shared` | what follows the release of the lock |

mod blocking;
mod build;
mod builder;
mod chosen;
mod class;
mod class_queue;
mod class_state;
mod core;
mod current;
mod decisions;
mod dispatcher;
mod error;
mod fiber_job;
mod future;
mod idle_wait;
#[cfg(all(test, shuttle))]
mod interleavings;
mod job;
mod layout;
mod learning;
mod outside;
mod owning;
mod plain;
mod poller;
mod pool;
mod rescue;
mod rescuer;
mod running_slice;
mod scope;
mod shared;
#[cfg(test)]
mod shifting;
mod slice;
mod slice_settings;
mod spawned;
mod stalls;
mod stats;
mod thread_table;
mod turn;
#[cfg(test)]
mod virtual_time;
mod worker;

pub use blocking::blocking;
pub use builder::PoolBuilder;
pub use class::{ClassNames, ClassOptions, NamesClass, PoolClass};
pub use current::{Checkpointed, cancelled, checkpoint};
pub use error::{
    BuildError, JoinError, MAX_POOL_CLASSES, OutsidePool, PanicPayload, PoolWarning, ShedReason,
    ShutdownTimeout, SubmitError,
};
pub use future::JobFuture;
pub use headway_machine::histogram::TimeHistogram;
pub use headway_ops::doors::DoorError;
pub use headway_ops::socket::ControlPlace;
pub use layout::PoolLayout;
pub use pool::Pool;
pub use scope::JobScope;
pub use stats::{ClassCounts, ClassRuns, PoolClassStats, PoolStats};
