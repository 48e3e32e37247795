//! A short request does not wait for a long one that runs already: with one worker that could only be interrupted.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use headway_runtime::{Builder, Call, checkpoint};

use super::common::{FOREVER, play, replay};

/// Two longs run until two shorts are done, which come every `gap_ns` by turns with them, a long first. The caller is `alone`.
pub(crate) fn shorts_overtake(builder: Builder, gap_ns: u64, context: &str) {
    static SHORT_DONE: AtomicU64 = AtomicU64::new(0);
    static LONG_SAW: AtomicU64 = AtomicU64::new(0);
    SHORT_DONE.store(0, Ordering::Relaxed);
    LONG_SAW.store(0, Ordering::Relaxed);
    let (datapath, control) = replay(1, 4, gap_ns, [0, 0]);
    let server = builder
        .service(|call: &mut Call<'_>| match call.class().0 {
            1 => {
                let end = Instant::now() + FOREVER;
                while SHORT_DONE.load(Ordering::Relaxed) < 2 && Instant::now() < end {
                    checkpoint();
                }
                LONG_SAW.fetch_add(SHORT_DONE.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            _ => {
                SHORT_DONE.fetch_add(1, Ordering::Relaxed);
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered, 4, "{context}: {stats:?}");
    assert_eq!(LONG_SAW.load(Ordering::Relaxed), 4, "{context}");
}
