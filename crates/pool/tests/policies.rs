//! Every live policy of the registry runs every job, once.

use headway_policy::server::role::Owner;
use headway_policy::server::systems::{NAMES, ServerSpec};
use headway_pool::{BuildError, ClassOptions, Pool, PoolBuilder, PoolLayout, checkpoint};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use crate::common::{LIMIT, skips, until};

fn classes(policy: &str, workers: usize) -> PoolBuilder {
    let builder = Pool::builder().policy(policy).workers(workers);
    let builder = builder.class(
        "short",
        ClassOptions::new()
            .mean(Duration::from_micros(1))
            .share(0.5),
    );
    let long = ClassOptions::new()
        .mean(Duration::from_micros(100))
        .share(0.5);
    builder
        .class("long", long)
        .class("job", ClassOptions::new())
}

/// Submits from two threads, cancels some, and counts what ran.
fn serve(pool: &Pool, policy: &str) {
    let ran = Arc::new(AtomicUsize::new(0));
    let dropped = AtomicUsize::new(0);
    std::thread::scope(|threads| {
        for thread in 0..2 {
            let (ran, dropped) = (&ran, &dropped);
            threads.spawn(move || {
                for at in 0..500 {
                    let ran = Arc::clone(ran);
                    let class = ["short", "long", "job"][(at + thread) % 3];
                    let job = pool.submit(class, move || {
                        for _ in 0..at % 50 {
                            checkpoint().unwrap();
                        }
                        ran.fetch_add(1, Ordering::SeqCst);
                    });
                    match at % 4 {
                        0 => job.wait().unwrap(),
                        1 => {
                            dropped.fetch_add(1, Ordering::SeqCst);
                            drop(job);
                        }
                        _ => job.detach(),
                    }
                }
            });
        }
    });
    pool.wait_idle().unwrap();
    let counts = pool.stats().total();
    assert!(counts.add_up(), "{policy}: {counts:?}");
    assert_eq!(counts.submitted, 1000, "{policy}");
    assert_eq!(counts.done as usize, ran.load(Ordering::SeqCst), "{policy}");
    assert_eq!(counts.done + counts.cancelled, 1000, "{policy}");
    assert!(
        counts.cancelled as usize <= dropped.load(Ordering::SeqCst),
        "{policy}"
    );
}

#[test]
fn every_policy_runs_every_job_once() {
    for policy in NAMES {
        for workers in [1, 2, 3] {
            let pool = classes(policy, workers)
                .build()
                .unwrap_or_else(|error| panic!("{policy}: {error}"));
            serve(&pool, policy);
            pool.shutdown(LIMIT).unwrap();
            until("the threads are gone", || pool.stats().threads == 0);
        }
    }
}

#[test]
fn every_policy_with_a_dispatcher_runs_every_job_once_by_its_thread() {
    for policy in NAMES {
        let spec: ServerSpec = policy.parse().unwrap();
        for workers in [1, 2, 3] {
            let builder = classes(policy, workers).layout(PoolLayout::Dedicated);
            let pool = match builder.build() {
                Ok(pool) => pool,
                Err(BuildError::NoDispatcher { .. }) => {
                    assert_ne!(spec.facts().owner, Owner::Dispatcher, "{policy}");
                    continue;
                }
                Err(error) => panic!("{policy}: {error}"),
            };
            assert_eq!(spec.facts().owner, Owner::Dispatcher, "{policy}");
            serve(&pool, policy);
            pool.shutdown(LIMIT).unwrap();
            until("the threads are gone", || pool.stats().threads == 0);
        }
    }
}

/// `shutdown` joins the dispatcher's thread; dropping a pool ends it too.
#[test]
fn the_dispatchers_thread_ends_with_the_pool() {
    let dispatches = || {
        let tasks = std::fs::read_dir("/proc/self/task").unwrap();
        let names = tasks
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).ok());
        names.filter(|name| name.trim() == "apart-dispatch").count()
    };
    let build = || {
        let builder = classes("darc-stable", 2).name("apart");
        builder.layout(PoolLayout::Dedicated).build().unwrap()
    };
    let pool = build();
    // A thread names itself as it starts.
    until("the dispatcher's thread runs", || dispatches() == 1);
    pool.shutdown(LIMIT).unwrap();
    assert_eq!(dispatches(), 0);
    drop(build());
    until("the dispatcher's thread is gone", || dispatches() == 0);
}

#[test]
#[expect(unsafe_code, reason = "jobs here hold nothing over a checkpoint")]
fn every_policy_runs_every_job_once_where_jobs_are_interrupted() {
    if skips("every_policy_runs_every_job_once_where_jobs_are_interrupted") {
        return;
    }
    for policy in NAMES {
        for layout in [PoolLayout::Inline, PoolLayout::Dedicated] {
            // SAFETY: the jobs of `serve` hold nothing over a checkpoint.
            let builder = unsafe { classes(policy, 2).plain_fibers() };
            let pool = match builder.layout(layout).build() {
                Ok(pool) => pool,
                // What they interrupt goes on at any worker, which plain fibers cannot.
                Err(_) if ["tardis", "synergy"].contains(policy) => continue,
                Err(BuildError::NoDispatcher { .. }) => continue,
                Err(error) => panic!("{policy}: {error}"),
            };
            serve(&pool, policy);
            assert!(
                pool.warnings()
                    .iter()
                    .all(|warning| !matches!(warning, headway_pool::PoolWarning::RunsToEnd { .. }))
            );
            pool.shutdown(LIMIT).unwrap();
        }
    }
}

#[test]
#[expect(unsafe_code, reason = "jobs here hold nothing over a checkpoint")]
fn a_long_job_makes_way_at_its_checkpoints() {
    if skips("a_long_job_makes_way_at_its_checkpoints") {
        return;
    }
    for policy in ["srpt", "shinjuku-sq", "tiny-quanta", "mlfq", "gittins"] {
        // Under srpt a job that had more than its class's mean has nothing left, and is not interrupted.
        let builder = classes(policy, 1).class(
            "longest",
            ClassOptions::new().mean(Duration::from_secs(100)),
        );
        // SAFETY: the jobs here hold nothing over a checkpoint.
        let pool = unsafe { builder.plain_fibers() }.build().unwrap();
        let shorts = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&shorts);
        let began = crate::common::Gate::default();
        let begins = began.clone();
        // The long job ends only once a short one has run, on the only worker there is.
        let long = pool.submit("longest", move || {
            begins.open();
            until("a short job has run", || {
                checkpoint().unwrap();
                seen.load(Ordering::SeqCst) > 0
            });
        });
        began.wait();
        pool.submit("short", move || shorts.fetch_add(1, Ordering::SeqCst))
            .wait()
            .unwrap();
        long.wait().unwrap();
        assert!(pool.stats().interruptions > 0, "{policy}");
    }
}

#[test]
#[expect(unsafe_code, reason = "jobs here hold nothing over a checkpoint")]
fn an_uninterrupted_class_runs_to_its_end() {
    let builder = Pool::builder()
        .policy("shinjuku-sq")
        .workers(1)
        .class("whole", ClassOptions::new().uninterrupted());
    // SAFETY: the jobs here hold nothing over a checkpoint.
    let pool = unsafe { builder.plain_fibers() }.build().unwrap();
    let order = Arc::new(std::sync::Mutex::new(Vec::new()));
    let jobs: Vec<_> = (0..4)
        .map(|at| {
            let order = Arc::clone(&order);
            pool.submit("whole", move || {
                for _ in 0..20_000 {
                    checkpoint().unwrap();
                }
                order.lock().unwrap().push(at);
            })
        })
        .collect();
    jobs.into_iter().for_each(|job| job.wait().unwrap());
    assert_eq!(pool.stats().interruptions, 0);
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3]);
}

#[test]
#[expect(unsafe_code, reason = "jobs here hold nothing over a checkpoint")]
fn an_interrupted_child_within_its_parent_stays_itself() {
    if skips("an_interrupted_child_within_its_parent_stays_itself") {
        return;
    }
    // No policy is named: where jobs can be interrupted, shorter ones interrupt longer ones.
    let builder = Pool::builder().policy("srpt").workers(1);
    let builder = builder.class("short", ClassOptions::new().mean(Duration::from_micros(1)));
    let builder = builder.class(
        "longest",
        ClassOptions::new().mean(Duration::from_secs(100)),
    );
    // SAFETY: the jobs here hold nothing over a checkpoint.
    let pool = unsafe { builder.plain_fibers() }.build().unwrap();
    let (began, shorts) = (
        crate::common::Gate::default(),
        Arc::new(AtomicUsize::new(0)),
    );
    let (handle, begins, seen) = (pool.clone(), began.clone(), Arc::clone(&shorts));
    let (said, hears) = std::sync::mpsc::channel();
    let parent = pool.submit("longest", move || {
        let child = handle.submit("longest", move || {
            begins.open();
            until("a short job has run", || {
                checkpoint().unwrap();
                seen.load(Ordering::SeqCst) > 0
            });
            headway_pool::cancelled()
        });
        said.send((child.wait().unwrap(), headway_pool::cancelled()))
            .unwrap();
    });
    began.wait();
    // The parent is cancelled, and its child is not; the child goes on after a short job.
    drop(parent);
    pool.submit("short", move || shorts.fetch_add(1, Ordering::SeqCst))
        .wait()
        .unwrap();
    assert_eq!(hears.recv_timeout(LIMIT), Ok((false, true)));
    assert!(pool.stats().interruptions > 0);
}

/// Nothing is said of the classes. The only worker's report ends once a point has, so it has to be interrupted.
#[test]
fn where_jobs_have_checkpoints_the_pool_interrupts_them() {
    if skips("where_jobs_have_checkpoints_the_pool_interrupts_them") {
        return;
    }
    let builder = Pool::builder().workers(1).checkpoints();
    let builder = builder.class("point", ClassOptions::new());
    let pool = builder
        .class("report", ClassOptions::new())
        .build()
        .unwrap();
    // The report may be as much longer than those before it as it likes.
    for _ in 0..100 {
        pool.run("point", || ()).unwrap();
        pool.run("report", || ()).unwrap();
    }
    let points = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&points);
    let report = pool.submit("report", move || {
        let deadline = std::time::Instant::now() + LIMIT;
        while seen.load(Ordering::SeqCst) == 0 && std::time::Instant::now() < deadline {
            checkpoint().unwrap();
        }
        seen.load(Ordering::SeqCst)
    });
    until("the report runs", || pool.stats().total().running == 1);
    let point = pool.submit("point", move || points.fetch_add(1, Ordering::SeqCst));
    point.wait().unwrap();
    assert_eq!(report.wait().unwrap(), 1, "the point passed the report");
    assert!(pool.stats().interruptions > 0);
}
