//! Workers that keep time themselves, by a timer of the kernel's where slices are long.
#![expect(unsafe_code, reason = "reads the line that probes read")]

use std::arch::asm;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headway_fiber::abi::__headway_preempt;
use headway_runtime::{Call, Layout, TimerCost, checkpoint};

use super::common::{FOREVER, play, replay};
use super::{alone, builder, roam};

/// Whether a probe calls into the runtime now.
fn probes_call() -> bool {
    let flag: u64;
    // SAFETY: reads this thread's own line.
    unsafe {
        asm!("mov {0}, qword ptr [rip + {1}@gottpoff]", "mov {0}, qword ptr fs:[{0}]", out(reg) flag, sym __headway_preempt,
            options(nostack, preserves_flags));
    }
    flag != 0
}

/// What a handler met.
#[derive(Default)]
struct Seen {
    down: AtomicU64,
    up: AtomicU64,
    /// Requests of the class that is answered soon.
    shorts: AtomicU64,
}

impl Seen {
    fn probe(&self) {
        let count = if probes_call() { &self.up } else { &self.down };
        count.fetch_add(1, Ordering::Relaxed);
        checkpoint();
    }
}

/// One long request, which ends once the short one that came after it was answered, on one worker without a dispatcher.
fn long_makes_way(policy: &str, every: Duration) -> Arc<Seen> {
    let (datapath, control) = replay(1, 2, 0, [1, 0]);
    let seen = Arc::new(Seen::default());
    let inside = Arc::clone(&seen);
    let server = roam(builder(policy, 1, Layout::Inline), true)
        .look_every(every)
        .service(move |call: &mut Call<'_>| {
            if call.service_hint_ns() == 0 {
                inside.shorts.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let begun = Instant::now();
            while inside.shorts.load(Ordering::Relaxed) == 0 && begun.elapsed() < FOREVER {
                inside.probe();
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered, 2, "{policy}: {stats:?}");
    assert_eq!(
        seen.shorts.load(Ordering::Relaxed),
        1,
        "{policy}: the short waited for the long, for a minute"
    );
    assert_eq!(stats.preemptions, 1, "{policy}: {stats:?}");
    seen
}

/// Where the machine stops the worker for as long as a slice, it sets no timer; so slices become longer until one was set.
#[test]
#[cfg_attr(headway_tsan, ignore = "it delays signals to where it likes")]
fn a_timer_ends_a_long_slice_whose_probes_do_not_call() {
    let _alone = alone();
    let worth = Duration::from_nanos(TimerCost::measured().unwrap().worth_ns());
    for policy in ["concord,q=5us", "tardis,q=SLICE", "tiny-quanta,q=SLICE"] {
        let mut slice = 8 * worth;
        loop {
            let policy = policy.replace("SLICE", &format!("{}us", slice.as_micros()));
            let seen = long_makes_way(&policy, slice);
            let up = seen.up.load(Ordering::Relaxed);
            assert!(up > 0, "{policy}: the flag is up at the slice's end");
            if seen.down.load(Ordering::Relaxed) > 0 {
                break;
            }
            slice *= 2;
            assert!(
                slice < FOREVER,
                "{policy}: {up} probes called, and none did not"
            );
        }
    }
}

/// SYNERGY times longs only (section 5.1).
#[test]
fn a_short_under_synergy_takes_no_probe() {
    const REQUESTS: u32 = 200;
    const PROBES: u64 = 50;
    let _alone = alone();
    let (datapath, control) = replay(1, REQUESTS, 0, [0, 1]);
    let seen = Arc::new(Seen::default());
    let inside = Arc::clone(&seen);
    let server = roam(builder("synergy", 1, Layout::Inline), true)
        .service(move |call: &mut Call<'_>| {
            let is_short = call.service_hint_ns() == 0;
            for _ in 0..PROBES {
                if is_short {
                    inside.probe();
                } else {
                    checkpoint();
                }
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    assert_eq!(
        server.shutdown(FOREVER).unwrap().answered,
        u64::from(REQUESTS)
    );
    assert_eq!(seen.up.load(Ordering::Relaxed), 0);
    assert_eq!(
        seen.down.load(Ordering::Relaxed),
        u64::from(REQUESTS / 2) * PROBES
    );
}
