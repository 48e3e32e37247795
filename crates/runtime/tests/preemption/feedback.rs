//! Handlers that say where they are long, as they should and as they should not.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use headway_runtime::{Call, DeclaredClass, FeedbackStats, Layout, checkpoint, suspensions};

use super::common::{FOREVER, play, replay};
use super::slower::until_interrupted;
use super::{alone, builder, in_both_layouts, roam};

/// Three parts of ten quanta and more, with probes; only the second says that it is long, or none does.
fn three_parts(call: &mut Call<'_>, says: bool) -> [u64; 3] {
    const PART: Duration = Duration::from_micros(200);
    let interruptions = || {
        let (begun, before) = (Instant::now(), suspensions());
        while begun.elapsed() < PART {
            checkpoint();
        }
        suspensions() - before
    };
    let before = suspensions();
    let first = interruptions();
    let second = if says {
        call.long(|call| {
            call.feedback_start();
            interruptions();
            call.feedback_finished();
            interruptions();
            suspensions() - before - first
        })
    } else {
        interruptions()
    };
    call.feedback_finished(); // One too many changes nothing.
    [first, second, interruptions()]
}

/// The observations of the handlers of 60 requests, and the number of their interruptions.
fn told(policy: &str, layout: Layout, heard: bool, says: bool) -> ([u64; 3], u64) {
    let seen = Arc::new(Mutex::new([0; 3]));
    let inside = Arc::clone(&seen);
    let (datapath, control) = replay(1, 60, 2_000, [0, 0]);
    let server = roam(builder(policy, 2, layout), true)
        .by_feedback(heard)
        .service(move |call: &mut Call<'_>| {
            let parts = three_parts(call, says);
            let mut seen = inside.lock().unwrap();
            (0..3).for_each(|part| seen[part] += parts[part]);
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!(stats.answered, 60);
    let seen = *seen.lock().unwrap();
    (seen, stats.preemptions)
}

#[test]
fn by_feedback_only_what_says_that_it_is_long_is_interrupted() {
    let _alone = alone();
    let policies = ["concord,q=20us", "tiny-quanta,q=20us"];
    for (policy, layout) in in_both_layouts(policies) {
        until_interrupted(policy, |_| {
            let ([first, _, last], preemptions) = told(policy, layout, false, true);
            first.min(last).min(preemptions)
        });
        until_interrupted(policy, |_| {
            let ([first, second, last], preemptions) = told(policy, layout, true, true);
            assert_eq!((first, last), (0, 0), "{policy}: where it says nothing");
            // Some slices are renewed at once, which is no preemption.
            assert!(second >= preemptions, "{policy}: {second}, {preemptions}");
            preemptions
        });
        assert_eq!(
            told(policy, layout, true, false),
            ([0; 3], 0),
            "{policy}: says nothing"
        );
    }
}

/// What a handler finds out is heard though the request's class says nothing: one worker, and a long that waits for a short behind it. (S2: under
/// `synergy` such a long was never timed.)
#[test]
fn a_request_that_says_it_is_long_gives_way_whatever_its_class() {
    let _alone = alone();
    let policies = [
        "synergy",
        "synergy,longs=learned",
        "synergy,longs=hints",
        "synergy,parts=ws+wq+cp",
        "concord,q=20us",
        "concord,q=20us,dispatcher=dedicated",
        "shinjuku-sq,q=20us",
        "tiny-quanta,q=20us",
    ];
    for (policy, layout) in in_both_layouts(policies) {
        for heard in [false, true] {
            let shorts_done = Arc::new(AtomicU64::new(0));
            let (datapath, control) = replay(1, 4, 1_000_000, [1, 2]);
            let done = Arc::clone(&shorts_done);
            let same = |name| DeclaredClass::new(name, Duration::ZERO);
            let server = roam(builder(policy, 1, layout), true)
                .classes(vec![same("any"), same("other")])
                .by_feedback(heard)
                .service(move |call: &mut Call<'_>| {
                    if call.service_hint_ns() == 2 {
                        call.long(|_| {
                            let end = Instant::now() + FOREVER;
                            while done.load(Ordering::Relaxed) < 2 && Instant::now() < end {
                                checkpoint();
                            }
                        });
                        assert!(done.load(Ordering::Relaxed) >= 2, "the short waited for it");
                    } else {
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                    call.reply_in_place();
                })
                .datapath(datapath)
                .start()
                .unwrap();
            play(&control);
            let stats = server.shutdown(FOREVER).unwrap();
            let context = format!("{policy}, {layout:?}, by feedback {heard}: {stats:?}");
            assert_eq!((stats.answered, stats.panics), (4, 0), "{context}");
        }
    }
}

/// The counter of each kind of misuse. Half of the requests are of class `short`, and those say that they are long too.
#[test]
fn misused_feedback_is_counted_by_class_and_harms_nothing() {
    let _alone = alone();
    for (policy, heard) in [
        ("c-fcfs", false),
        ("concord,q=20us", false),
        ("concord,q=20us", true),
    ] {
        let (datapath, control) = replay(1, 400, 1_000, [0, 0]);
        let server = builder(policy, 1, Layout::Inline)
            .queue_limit(400)
            .by_feedback(heard)
            .service(|call: &mut Call<'_>| {
                call.long(|call| {
                    // Nested: no misuse.
                    call.feedback_start();
                    call.feedback_finished();
                });
                call.feedback_finished();
                call.feedback_finished();
                call.feedback_start();
                if call.class().0 == 1 {
                    call.feedback_start();
                    call.feedback_start();
                }
                call.reply_in_place();
            })
            .datapath(datapath)
            .start()
            .unwrap();
        play(&control);
        let stats = server.shutdown(FOREVER).unwrap();
        assert_eq!(stats.answered, 400);
        for class in &stats.classes {
            let expected = FeedbackStats {
                said_long: class.answered,
                from_short: if class.name == "short" {
                    class.answered
                } else {
                    0
                },
                unended: class.answered * if class.name == "short" { 1 } else { 3 },
                unbegun: class.answered * 2,
            };
            assert_eq!(
                class.feedback, expected,
                "{policy}, {heard}: {}",
                class.name
            );
            assert!(class.answered > 0 || class.name == "unknown");
        }
    }
}

/// A panic leaves parts open that the handler would have ended.
#[test]
fn a_part_that_a_panic_left_open_is_no_misuse() {
    let _alone = alone();
    let (datapath, control) = replay(1, 50, 1_000, [0, 0]);
    let server = builder("concord,q=20us", 1, Layout::Inline)
        .by_feedback(true)
        .service(|call: &mut Call<'_>| {
            call.long(|_| std::panic::resume_unwind(Box::new("planned")));
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.answered, stats.panics), (50, 50));
    let said: u64 = stats
        .classes
        .iter()
        .map(|class| class.feedback.said_long)
        .sum();
    assert_eq!(said, 50);
    assert!(
        stats
            .classes
            .iter()
            .all(|class| class.feedback.unended == 0)
    );
}
