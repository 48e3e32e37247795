//! Threads in user space: as cheap as a function call, and written like the standard library's.
//!
//! A [`Runtime`] has *kthreads*, kernel threads that run on a core while they are granted one ([`headway_kthread`]). They run any number of *threads*
//! ([`spawn`]), each a fiber with a stack of its own. A thread that waits lets the next one run by a switch of stacks, without the kernel.

mod head;
mod join;
mod kernel;
mod kthread_loop;
mod list;
mod locals;
mod park;
mod ring;
mod runtime;
mod schedule;
mod shared;
mod spin;
mod sync;
mod timers;

pub use join::{Abandoned, JoinHandle, spawn, try_spawn};
pub use locals::UthreadLocal;
pub use park::{Unparker, park, park_timeout, unparker};
pub use runtime::{Migration, Runtime, RuntimeBuilder};
pub use schedule::{in_thread, yield_now};
pub use timers::sleep;
