//! Jobs by the million, of every kind, under every policy and in pools that end at any moment: the counts add up, and nothing is left behind.
//!
//! `HEADWAY_POOL_SOAK=10000000` says how many; `make soak-pool` does that.
#![expect(unsafe_code, reason = "an allocator that counts")]

#[path = "common.rs"]
#[allow(dead_code, reason = "this program uses a part of it")]
mod common;
#[path = "drawn.rs"]
mod drawn;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicIsize, Ordering};

use common::until;
use drawn::{alive, be_quiet_about_drawn_panics, in_time, live_through};

/// Bytes that are allocated.
static ALLOCATED: AtomicIsize = AtomicIsize::new(0);

struct Counting;

// SAFETY: the system's allocator does all.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as isize, Ordering::Relaxed);
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(place, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Pools until nothing more is allocated than before: standard library and test harness keep some for the process.
const WARM_UP: u64 = 50;

/// The most that may be kept after any number of pools, bytes; none is, as a rule. One job in a hundred that is not freed keeps more.
const SLACK: isize = 16 << 10;

fn threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

#[test]
fn nothing_is_left_of_millions_of_jobs() {
    be_quiet_about_drawn_panics();
    let wanted = std::env::var("HEADWAY_POOL_SOAK")
        .map_or(200_000, |text| text.parse::<u64>().expect("a number"));
    let (mut submitted, mut seed, mut before) = (0, 0, 0);
    let threads_before = threads();
    while submitted < wanted || seed <= WARM_UP {
        submitted += in_time(seed, move || live_through(1_000_000 + seed, 2_000));
        seed += 1;
        until("every job and every waker is gone", || alive() == 0);
        // A thread whose job outlived its pool ends with the job.
        until("the threads are gone", || threads() <= threads_before);
        if seed == WARM_UP {
            before = ALLOCATED.load(Ordering::Relaxed);
        }
    }
    let kept = ALLOCATED.load(Ordering::Relaxed) - before;
    println!("{submitted} jobs in {seed} pools, {kept} bytes kept");
    assert!(kept < SLACK, "{kept} bytes are kept after {submitted} jobs");
}
