//! Workers beside a dispatcher's thread that end its quanta by their own clocks.

use std::time::{Duration, Instant};

use headway_runtime::{Call, Idle, Layout, Spin, checkpoint};

use super::common::{FOREVER, assert_all_answered, play, replay};
use super::overtaking::shorts_overtake;
use super::slower::{slower_replay, until_interrupted};
use super::{LONG_NS, alone, builder, roam};

/// The workers end the quanta that a dispatcher's thread watches, by their own clocks.
#[test]
fn workers_time_the_quanta_of_a_dispatcher() {
    let _alone = alone();
    for policy in [
        "concord,q=5us",
        "shinjuku-sq,q=5us",
        "shinjuku-mq,q=5us",
        "mlfq",
    ] {
        for idle in [Idle::default(), Idle::Park] {
            until_interrupted(policy, |stretch| {
                let (datapath, control) = slower_replay(stretch);
                let server = builder(policy, 2, Layout::Dedicated)
                    .interrupt_by_clock()
                    .idle(idle)
                    .service(Spin::default())
                    .datapath(datapath)
                    .start()
                    .unwrap();
                play(&control);
                let stats = server.shutdown(FOREVER).unwrap();
                assert_all_answered(&stats, &control, LONG_NS * stretch, policy);
                stats.preemptions
            });
        }
    }
}

/// A quantum that is over interrupts only for what waits: a request alone goes on.
#[test]
fn by_its_clock_a_worker_interrupts_nobody_in_vain() {
    let _alone = alone();
    let (datapath, control) = replay(1, 2, 1_000_000_000, [0, 0]);
    let server = builder("concord,q=5us,dispatcher=dedicated", 1, Layout::Dedicated)
        .interrupt_by_clock()
        .service(|call: &mut Call<'_>| {
            let begun = Instant::now();
            while call.class().0 == 1 && begun.elapsed() < Duration::from_millis(1) {
                checkpoint();
            }
        })
        .datapath(datapath)
        .start()
        .unwrap();
    play(&control);
    let stats = server.shutdown(FOREVER).unwrap();
    assert_eq!((stats.answered, stats.preemptions), (2, 0), "{stats:?}");
}

/// Inline a worker looks for arrivals itself while its request runs: by its clock it sees what is more urgent, though no thread could raise a flag.
#[test]
fn inline_the_clock_does_for_policies_that_interrupt_at_arrivals() {
    let _alone = alone();
    for policy in ["srpt", "on-blocked"] {
        for (workers, roams) in [(1, false), (2, true)] {
            until_interrupted(policy, |stretch| {
                let (datapath, control) = slower_replay(stretch);
                let builder = builder(policy, workers, Layout::Inline).interrupt_by_clock();
                let server = roam(builder, roams)
                    .service(Spin::default())
                    .datapath(datapath)
                    .start()
                    .unwrap();
                play(&control);
                let stats = server.shutdown(FOREVER).unwrap();
                assert_all_answered(&stats, &control, LONG_NS * stretch, policy);
                stats.preemptions
            });
        }
        let builder = builder(policy, 1, Layout::Inline).interrupt_by_clock();
        shorts_overtake(builder, 1_000, policy);
    }
}

/// A worker sees only at the end of a quantum what is more urgent: it must look for arrivals itself, or be asked.
#[test]
fn what_a_clock_comes_too_late_for_is_refused() {
    let _alone = alone();
    for (policy, layout, fits) in [
        ("srpt", Layout::Dedicated, false),
        ("on-blocked", Layout::Dedicated, false),
        ("on-blocked", Layout::Inline, true),
    ] {
        let (datapath, _control) = replay(1, 1, 1, [0, 0]);
        let started = builder(policy, 1, layout)
            .interrupt_by_clock()
            .service(Spin::default())
            .datapath(datapath)
            .start();
        let said = started.err().map(|error| error.to_string());
        let refused = said.is_some_and(|said| said.contains("more urgent ones"));
        assert_eq!(refused, !fits, "{policy}, {layout:?}");
    }
}
