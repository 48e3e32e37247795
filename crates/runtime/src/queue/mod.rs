//! How requests cross threads: as words in rings and queues, and who is woken for them.
//!
//! Code here knows neither handlers nor phases. [`token`] alone turns a slot's token into a word and back.

pub(crate) mod links;
pub(crate) mod look;
pub(crate) mod run_queue;
pub(crate) mod rx_waker;
pub(crate) mod shared_queue;
pub(crate) mod token;
