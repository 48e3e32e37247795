//! Queues are bounded, classes have shares, and what comes too late is not begun.

use headway_pool::{ClassOptions, JoinError, Pool, ShedReason, SubmitError, checkpoint};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{Gate, occupy, skips, until};

fn built(classes: &[(&str, ClassOptions)], workers: usize, capacity: usize) -> Pool {
    let builder = Pool::builder().workers(workers).capacity(capacity);
    let builder = builder.class("job", ClassOptions::new());
    let builder = classes.iter().fold(builder, |builder, (name, options)| {
        builder.class(name, options.clone())
    });
    builder.build().unwrap()
}

#[test]
fn a_full_queue_refuses_and_says_how_many_wait() {
    let pool = built(&[("limited", ClassOptions::new().queue_limit(2))], 1, 100);
    let gate = occupy(&pool, 1);
    let accepted = [pool.submit("limited", || ()), pool.submit("limited", || ())];
    let refused = pool.try_submit("limited", || ()).err().unwrap();
    let SubmitError::Overloaded {
        class,
        queued,
        retry_after,
    } = &refused
    else {
        panic!("{refused}")
    };
    assert_eq!((class.as_str(), *queued), ("limited", 2));
    assert!(*retry_after > Duration::ZERO);
    assert!(
        pool.try_submit("job", || ()).is_ok(),
        "another class has room"
    );
    gate.open();
    accepted.into_iter().for_each(|job| job.wait().unwrap());
    assert_eq!(pool.run("limited", || 7).unwrap(), 7);
}

#[test]
fn a_full_pool_sheds_its_longest_class_for_a_shorter_one() {
    let long = ClassOptions::new().mean(Duration::from_millis(100));
    let short = ClassOptions::new().mean(Duration::from_micros(10));
    let pool = built(&[("long", long), ("short", short)], 1, 3);
    let gate = occupy(&pool, 1);
    let longs: Vec<_> = (0..3).map(|_| pool.submit("long", || ())).collect();
    assert!(
        pool.try_submit("long", || ()).is_err(),
        "a long makes no room for a long"
    );
    let shorts: Vec<_> = (0..2).map(|at| pool.submit("short", move || at)).collect();
    assert!(shorts.iter().all(|job| job.refusal().is_none()));
    gate.open();
    let ends: Vec<_> = longs.into_iter().map(|job| job.wait()).collect();
    assert!(ends[0].is_ok(), "the youngest are shed first");
    for end in &ends[1..] {
        assert!(matches!(end, Err(JoinError::Shed(ShedReason::MadeRoom))));
    }
    shorts
        .into_iter()
        .for_each(|job| assert!(job.wait().is_ok()));
    assert!(pool.stats().total().add_up());
}

#[test]
fn a_job_that_would_miss_its_slo_by_waiting_is_refused() {
    let slow = ClassOptions::new()
        .mean(Duration::from_millis(10))
        .slo(Duration::from_millis(35));
    let pool = built(&[("slow", slow)], 1, 100);
    let gate = occupy(&pool, 1);
    // Three wait at most 20 ms and run for 10; the fourth would wait for 30.
    let accepted: Vec<_> = (0..3)
        .map(|_| pool.try_submit("slow", || ()).unwrap())
        .collect();
    assert!(matches!(
        pool.try_submit("slow", || ()),
        Err(SubmitError::Overloaded { queued: 3, .. })
    ));
    gate.open();
    accepted.into_iter().for_each(|job| job.wait().unwrap());
}

#[test]
fn a_class_has_as_many_workers_as_it_may() {
    let share = ClassOptions::new().workers_at_most(1);
    let pool = built(&[("share", share)], 3, 1000);
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let jobs: Vec<_> = (0..300)
        .map(|_| {
            let (now, most) = (Arc::clone(&now), Arc::clone(&most));
            pool.submit("share", move || {
                most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
                std::thread::yield_now();
                now.fetch_sub(1, Ordering::SeqCst);
            })
        })
        .collect();
    jobs.into_iter().for_each(|job| job.wait().unwrap());
    assert_eq!(most.load(Ordering::SeqCst), 1);
}

#[test]
fn a_full_share_keeps_no_worker_from_others() {
    let share = ClassOptions::new().workers_at_most(1);
    let pool = built(&[("share", share)], 2, 1000);
    let gate = Gate::default();
    let held: Vec<_> = (0..5)
        .map(|_| {
            let gate = gate.clone();
            pool.submit("share", move || gate.wait())
        })
        .collect();
    until("one of the class runs", || {
        pool.stats().total().running == 1
    });
    assert_eq!(pool.run("job", || 7).unwrap(), 7);
    assert_eq!(pool.stats().total().waiting, 4);
    gate.open();
    held.into_iter().for_each(|job| job.wait().unwrap());
}

#[test]
fn what_did_not_begin_in_time_is_shed() {
    let soon = ClassOptions::new().begin_within(Duration::from_nanos(1));
    let pool = built(&[("soon", soon)], 1, 100);
    let gate = occupy(&pool, 1);
    let late = pool.submit("soon", || ());
    // Later than a nanosecond, whatever the clock's grain.
    std::thread::sleep(Duration::from_millis(1));
    gate.open();
    assert!(matches!(
        late.wait(),
        Err(JoinError::Shed(ShedReason::TooLate))
    ));
    pool.wait_idle().unwrap();
    assert_eq!(pool.stats().total().shed, 1);
    assert_eq!(
        pool.run("job", || 7).unwrap(),
        7,
        "the policy is not left with a token"
    );
}

#[test]
fn keys_with_like_service_times_share_a_class() {
    let builder = Pool::builder().workers(2).class("job", ClassOptions::new());
    let pool = builder.learn_classes(12).build().unwrap();
    for _ in 0..30 {
        pool.submit_unclassified("/point", || ()).wait().unwrap();
        let report = || std::thread::sleep(Duration::from_millis(2));
        pool.submit_unclassified("/report", report).wait().unwrap();
    }
    let stats = pool.stats();
    let done = |name: &str| {
        stats
            .classes
            .iter()
            .find(|class| class.name == name)
            .unwrap()
            .counts
            .done
    };
    assert_eq!(done("unknown"), 2, "each key's first job");
    let learnt = stats
        .classes
        .iter()
        .filter(|class| class.name.starts_with("learnt"));
    let used: Vec<u64> = learnt
        .map(|class| class.counts.done)
        .filter(|&done| done > 0)
        .collect();
    assert_eq!(used.iter().sum::<u64>(), 58);
    assert!(used.len() >= 2, "{stats:?}");
}

#[test]
fn a_pool_that_makes_way_is_nicer_than_its_program() {
    let nice = || {
        let stat = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
        // proc_pid_stat(5): the 19th field, the 17th behind the name in brackets.
        let (_, fields) = stat.rsplit_once(") ").unwrap();
        fields.split(' ').nth(16).unwrap().to_owned()
    };
    let own = nice();
    let builder = Pool::builder()
        .workers(1)
        .nice(10)
        .class("job", ClassOptions::new());
    assert_eq!(builder.build().unwrap().run("job", nice).unwrap(), "10");
    assert_eq!(nice(), own);
    let beyond = Pool::builder().workers(1).nice(20).build();
    assert!(matches!(
        beyond,
        Err(headway_pool::BuildError::Nice { nice: 20 })
    ));
}

#[test]
fn a_pool_is_pinned_only_where_that_is_asked() {
    let allowed = || {
        let status = std::fs::read_to_string("/proc/thread-self/status").unwrap();
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
        line.unwrap().trim().to_owned()
    };
    let own = allowed();
    let first = own.split([',', '-']).next().unwrap().to_owned();
    let builder = || Pool::builder().workers(1).class("job", ClassOptions::new());
    assert_eq!(builder().build().unwrap().run("job", allowed).unwrap(), own);
    let pinned = builder().pin(&[first.parse().unwrap()]).build().unwrap();
    assert_eq!(pinned.run("job", allowed).unwrap(), first);
    let nowhere = builder().pin(&[1_000_000]).build();
    assert!(matches!(nowhere, Err(headway_pool::BuildError::Pin(_))));
}

/// Where each job begins as it comes and is interrupted, there would be a thread for each.
#[test]
fn no_more_jobs_begin_than_may_and_whoever_comes_then_finds_room() {
    if skips("no_more_jobs_begin_than_may_and_whoever_comes_then_finds_room") {
        return;
    }
    const LIMIT: usize = 9;
    const JOBS: usize = 50;
    for policy in ["mlfq", "srpt", "tiny-quanta"] {
        let builder = Pool::builder().policy(policy).workers(2);
        let builder = builder.begun_at_most(LIMIT);
        let builder = builder.class("long", ClassOptions::new().mean(Duration::from_secs(1)));
        let builder = builder.class("short", ClassOptions::new().mean(Duration::from_micros(1)));
        let pool = builder.build().unwrap();
        let begun = Arc::new(AtomicUsize::new(0));
        let is_over = Arc::new(AtomicBool::new(false));
        let submit = |_| {
            let (begun, is_over) = (Arc::clone(&begun), Arc::clone(&is_over));
            let job = move || {
                begun.fetch_add(1, Ordering::SeqCst);
                while !is_over.load(Ordering::SeqCst) {
                    checkpoint().unwrap();
                }
            };
            pool.submit("long", job)
        };
        let longs: Vec<_> = (0..JOBS).map(submit).collect();
        until("both workers are at longs", || {
            begun.load(Ordering::SeqCst) >= 2
        });
        // Each of them would wait for ever behind a long that runs to its end.
        for _ in 0..100 {
            pool.submit("short", || ()).wait().unwrap();
        }
        let most = begun.load(Ordering::SeqCst);
        assert!(most <= LIMIT, "{policy}: {most}");
        is_over.store(true, Ordering::SeqCst);
        longs.into_iter().for_each(|job| job.wait().unwrap());
        assert_eq!(begun.load(Ordering::SeqCst), JOBS, "{policy}");
        // What ended at home, where a worker was seen asleep, keeps its stack until the next look after the workers.
        let stats = pool.stats();
        assert!(stats.without_fiber == 0 || stats.rescued > 0, "{policy}");
    }
}
