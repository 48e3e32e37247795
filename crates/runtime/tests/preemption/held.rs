//! Requests that are asked to yield in a section that must not be interrupted: counted, by class, worker and kind of section.

use std::time::Instant;

use headway_runtime::{Call, HeldStats, NoPreempt, Section, Stats, checkpoint};

use super::common::{FOREVER, play, replay};
use super::{GAP_NS, LONG_NS, REQUESTS, TINY_QUANTA, alone, builder, in_both_layouts};

/// Longs that work within one section, and shorts that wait for them meanwhile.
fn served(policy: &str, layout: headway_runtime::Layout) -> Stats {
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
