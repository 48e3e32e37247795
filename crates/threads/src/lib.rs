//! Threads in user space: as cheap as a function call, and written like the standard library's.
//!
//! A [`Runtime`] has *kthreads*, kernel threads that run on a core while they are granted one ([`headway_kthread`]). They run any number of *threads*
//! ([`spawn`]), each a fiber with a stack of its own. A thread that waits lets the next one run by a switch of stacks, without the kernel.
//!
//! ```
//! use headway_threads::{Runtime, channel, spawn};
//!
//! let runtime = Runtime::builder().start()?;
//! let sum: u64 = runtime.run(|| {
//!     let (sender, receiver) = channel(4);
//!     let workers: Vec<_> = (1..=3_u64)
//!         .map(|number| {
//!             let sender = sender.clone();
//!             spawn(move || sender.send(number * number).expect("somebody receives"))
//!         })
//!         .collect();
//!     drop(sender);
//!     let sum = std::iter::from_fn(|| receiver.recv().ok()).sum();
//!     workers.into_iter().for_each(|worker| worker.join().expect("no worker panics"));
//!     sum
//! });
//! assert_eq!(sum, 14);
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! # Panics
//! A destructor may wait while its thread unwinds; the thread then resumes on the same kthread. `std` counts panics per kernel thread: meanwhile
//! [`std::thread::panicking`] is true in the other threads of this kthread, which poison locks of `std` and roll back guards as if they panicked. Keep destructors
//! from waiting, or end the panic by [`catch_unwind`](std::panic::catch_unwind) before the thread waits.

mod channel;
mod condvar;
mod current;
mod head;
mod join;
mod kernel;
mod kthread_loop;
mod locals;
mod lock_state;
#[cfg(loom)]
pub mod model;
mod mutex;
mod packets;
mod park;
mod read_cell;
mod reads;
mod runtime;
mod schedule;
mod semaphore;
mod siblings;
mod sleep;
mod slices;
#[cfg_attr(loom, path = "model/spin.rs")]
mod spin;
mod stack_error;
#[cfg_attr(loom, path = "model/suspending.rs")]
mod suspending;
mod timers;

pub use channel::{Receiver, Sender, Unreceived, Unsent, channel};
pub use condvar::Condvar;
pub use current::{current_kthread, in_thread};
pub use join::{Abandoned, JoinHandle, spawn, try_spawn};
pub use locals::UthreadLocal;
pub use mutex::{Mutex, MutexGuard};
pub use packets::PacketPoll;
pub use park::{Unparker, park, park_timeout, unparker, waker};
pub use read_cell::ReadCell;
pub use runtime::{Migration, Runtime, RuntimeBuilder};
pub use schedule::yield_now;
pub use semaphore::Semaphore;
pub use sleep::sleep;
pub use slices::{STOP_AT_SIGNAL, suspend_at_signal};
