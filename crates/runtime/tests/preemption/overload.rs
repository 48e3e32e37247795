//! More longs than a server can serve: they are refused by their class, and shorts go on.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use headway_net::replay::{Replay, ReplayArrival};
use headway_runtime::{Builder, Call, DeclaredClass, Layout, Stats, checkpoint};

use super::common::{FOREVER, play};
use super::slower::until_interrupted;
use super::{alone, builder, roam};

const BUFFERS: usize = 512;
const LONGS: u32 = 4_000;
/// Fewer than the buffers that are kept from longs.
const SHORTS: u32 = 100;

/// A flood of longs, and shorts behind it. Each long waits for all shorts, so that none ends before; or for nothing, where these may be refused.
fn flooded(builder: Builder, wait: bool) -> Stats {
    flooded_by(LONGS, builder.slots(BUFFERS), wait)
}

/// The same, by so many longs.
fn flooded_by(long_count: u32, builder: Builder, wait: bool) -> Stats {
    let longs = (0..long_count).map(|index| ReplayArrival {
        at_ns: 0,
        service_ns: 0,
        index,
        class: 1,
    });
    let shorts = (long_count..long_count + SHORTS).map(|index| ReplayArrival {
        at_ns: 1_000_000,
        service_ns: 0,
        index,
        class: 0,
    });
    let (datapath, control) = Replay::new(vec![longs.chain(shorts).collect()]).unwrap();
    let done = Arc::new(AtomicU64::new(0));
    let server = builder
        .service(move |call: &mut Call<'_>| {
            if call.class().0 == 0 {
                done.fetch_add(1, Ordering::Relaxed);
                return;
            }
            let begun = Instant::now();
            let shorts_wait = || done.load(Ordering::Relaxed) < u64::from(SHORTS);
            call.long(|_| {
                while wait && shorts_wait() && begun.elapsed() < FOREVER {
                    checkpoint();
                }
                (0..200_000).for_each(|_| checkpoint());
            });
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    server.shutdown(FOREVER).unwrap()
}

#[test]
fn longs_beyond_the_buffers_are_shed_and_shorts_are_answered() {
    let _alone = alone();
    for policy in ["synergy", "synergy,longs=hints", "synergy,room=8"] {
        for layout in [Layout::Inline, Layout::Dedicated] {
            let stats = flooded(roam(builder(policy, 1, layout), true), true);
            let [shorts, longs] = &stats.classes[..2] else {
                panic!("two classes")
            };
            let context = format!("{policy}, {layout:?}: {stats:?}");
            assert_eq!(
                (shorts.answered, shorts.shed),
                (u64::from(SHORTS), 0),
                "{context}"
            );
            assert_eq!(longs.answered + longs.shed, u64::from(LONGS), "{context}");
            assert!(longs.shed > 0, "{context}");
        }
    }
}

/// Of neither class anything is known beforehand. That nearly all requests of a class say that they are long tells it: no long ends before the shorts have.
#[test]
fn a_class_whose_requests_say_that_they_are_long_is_shed_first() {
    let _alone = alone();
    for layout in [Layout::Inline, Layout::Dedicated] {
        let unknown = |name| DeclaredClass::new(name, Duration::ZERO);
        let builder = roam(builder("synergy", 1, layout), true);
        let builder = builder.classes(vec![unknown("short"), unknown("long")]);
        let stats = flooded(builder, true);
        let [shorts, longs] = &stats.classes[..2] else {
            panic!("two classes")
        };
        let context = format!("{layout:?}: {stats:?}");
        assert_eq!(shorts.shed, 0, "{context}");
        assert_eq!(shorts.answered, u64::from(SHORTS), "{context}");
        assert_eq!(longs.answered + longs.shed, u64::from(LONGS), "{context}");
        assert!(longs.shed > 0, "{context}");
    }
}

/// Interrupted longs hold no receiver's buffer as long as there are rooms: one for each buffer, unless the policy's wait queue has room for fewer. All that
/// come here are interrupted before any ends, more than there are buffers.
#[test]
fn a_long_that_is_interrupted_gives_its_buffer_back() {
    let _alone = alone();
    for layout in [Layout::Inline, Layout::Dedicated] {
        let shed = |policy| {
            let unknown = |name| DeclaredClass::new(name, Duration::ZERO);
            let builder = roam(builder(policy, 1, layout), true).slots(BUFFERS);
            let builder = builder.classes(vec![unknown("short"), unknown("long")]);
            let stats = flooded_by(BUFFERS as u32 * 5 / 4, builder, true);
            let context = format!("{policy}, {layout:?}: {stats:?}");
            assert_eq!(stats.classes[0].answered, u64::from(SHORTS), "{context}");
            stats.classes[1].shed
        };
        assert_eq!(shed("synergy"), 0, "{layout:?}");
        let beyond = shed("synergy,room=16");
        assert!(beyond > 0, "{layout:?}: there were {beyond} rooms too many");
    }
}

/// Where no class is known as long, but requests say that they are, all buffers may be in use: what comes then is refused and counted, rather than left in the socket.
#[test]
fn what_comes_while_all_buffers_are_in_use_is_shed() {
    let _alone = alone();
    for layout in [Layout::Inline, Layout::Dedicated] {
        // Longs that nobody interrupts, for want of a core, take their turns one by one, and the others wait in the socket.
        until_interrupted("synergy", |_| {
            let unknown = |name| DeclaredClass::new(name, Duration::ZERO);
            let builder = roam(builder("synergy", 1, layout), true);
            let builder = builder.classes(vec![unknown("short"), unknown("long")]);
            let stats = flooded(builder, false);
            let classes = stats.classes[..2].iter();
            let (answered, shed) = classes.fold((0, 0), |(answered, shed), class| {
                (answered + class.answered, shed + class.shed)
            });
            assert_eq!(answered + shed, u64::from(LONGS + SHORTS), "{stats:?}");
            shed
        });
    }
}
