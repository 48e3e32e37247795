//! Requests that are asked to yield in a section that must not be interrupted: counted, by class, worker and kind of section.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use headway_runtime::{Call, HeldStats, Layout, NoPreempt, Section, Stats, checkpoint};

use super::common::{FOREVER, play, replay};
use super::slower::until_interrupted;
use super::{GAP_NS, LONG_NS, REQUESTS, TINY_QUANTA, alone, builder, in_both_layouts};

/// Longs that work within one section, and shorts that wait for them meanwhile.
fn served(policy: &str, layout: Layout) -> Stats {
    let (datapath, control) = replay(1, REQUESTS, GAP_NS, [0, 0]);
    let server = builder(policy, 1, layout)
        .service(|call: &mut Call<'_>| {
            if call.class().0 == 1 {
                let section = NoPreempt::enter();
                let begun = Instant::now();
                while begun.elapsed().as_nanos() < u128::from(LONG_NS / 4) {
                    checkpoint();
                }
                drop(section);
                checkpoint();
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    server.shutdown(FOREVER).unwrap()
}

#[test]
fn what_a_section_keeps_from_yielding_is_counted() {
    let _alone = alone();
    for (policy, layout) in in_both_layouts(["shinjuku-sq,q=5us", TINY_QUANTA]) {
        let begun = Instant::now();
        loop {
            let stats = served(policy, layout);
            let context = format!("{policy}, {layout:?}: {stats:?}");
            let [short, long, _] = &stats.classes[..] else {
                panic!("{context}");
            };
            assert!(
                short
                    .held
                    .kinds()
                    .all(|(_, held)| held == HeldStats::default()),
                "{context}"
            );
            let held = long.held.of(Section::NoPreempt);
            let others = Section::ALL.into_iter().skip(1);
            assert!(
                others
                    .map(|kind| long.held.of(kind))
                    .all(|held| held.count == 0),
                "{context}"
            );
            assert!(
                held.yields <= held.count && held.count <= long.answered + long.preemptions,
                "{context}"
            );
            // Nobody was held for longer than all of them took.
            assert!(held.ns <= long.cpu_ns, "{context}");
            let by_worker: u64 = stats
                .workers
                .iter()
                .map(|worker| worker.held.of(Section::NoPreempt).count)
                .sum();
            assert_eq!(by_worker, held.count, "{context}");
            // Where the machine gives the dispatcher no time, it asks nobody.
            if held.yields > 0 && held.ns > held.count * 1_000 {
                break;
            }
            assert!(begun.elapsed() < FOREVER, "{context}");
        }
    }
}

/// Longs that work in sections which let go, and end, where they must yield: how often that was, and the server's counts.
fn served_in_parts(policy: &str, layout: Layout, stretch: u64) -> (u64, Stats) {
    // Where there is no dispatcher, each worker has a queue of its own.
    let workers = if ["synergy", "tardis"].contains(&policy) {
        1
    } else {
        2
    };
    let (datapath, control) = replay(1, REQUESTS, GAP_NS * stretch, [0, 0]);
    let parts = Arc::new(AtomicU64::new(0));
    let ended = Arc::clone(&parts);
    let server = builder(policy, workers, layout)
        .service(move |call: &mut Call<'_>| {
            let begun = Instant::now();
            let mut left = call.class().0 == 1;
            while left {
                let section = NoPreempt::enter();
                let mut must = false;
                while left && !must {
                    left = begun.elapsed().as_nanos() < u128::from(LONG_NS * stretch);
                    must = section.must_yield();
                }
                ended.fetch_add(u64::from(must), Ordering::Relaxed);
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    (parts.load(Ordering::Relaxed), stats)
}

/// A section that lets go of what it holds at each look at the world begins anew so often that it gets nowhere.
#[test]
fn a_section_lets_go_only_where_its_request_is_interrupted() {
    let _alone = alone();
    let policies = [
        "srpt",
        "concord,q=20us",
        TINY_QUANTA,
        "mlfq",
        "synergy",
        "tardis",
    ];
    for (policy, layout) in in_both_layouts(policies) {
        if layout == Layout::Dedicated && policy == "tardis" {
            continue; // It has no dispatcher.
        }
        until_interrupted(policy, |stretch| {
            let (parts, stats) = served_in_parts(policy, layout, stretch);
            let context = format!("{policy}, {layout:?}: {parts} parts, {stats:?}");
            assert_eq!(stats.classes[1].preemptions, parts, "{context}");
            parts
        });
    }
}
