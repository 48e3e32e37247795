//! Every mistake gets a typed error that says what to do.

use headway_machine::Clock;
use headway_policy::spec::SpecError;
use std::mem::ManuallyDrop;
use std::net::TcpListener;
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixListener;

use headway_pool::{
    BuildError, ClassOptions, JoinError, OutsidePool, Pool, PoolLayout, PoolWarning, SubmitError,
    checkpoint,
};
use std::time::Duration;

use crate::common::pool;

fn refused(policy: &str) -> BuildError {
    let built = Pool::builder().policy(policy).workers(2).build();
    built.map(|_| policy.to_owned()).unwrap_err()
}

#[test]
fn a_policy_that_no_pool_follows_is_refused() {
    for policy in ["ps", "racksched", "pallas", "caladan"] {
        let error = refused(policy);
        assert!(matches!(error, BuildError::Policy(_)), "{policy}: {error}");
    }
    let misspelt = refused("dacr").to_string();
    assert!(misspelt.contains("did you mean 'darc'?"), "{misspelt}");
    assert!(matches!(
        refused("darc,deltas=2"),
        BuildError::Policy(SpecError::UnknownParam { .. })
    ));
    assert!(matches!(
        refused("darc,profile=known"),
        BuildError::KnownProfile { .. }
    ));
    assert!(matches!(
        refused("concord,dispatchers=2"),
        BuildError::SeveralDispatchers { dispatchers: 2, .. } | BuildError::Policy(_)
    ));
}

#[test]
fn a_policy_without_a_dispatcher_gives_it_no_thread() {
    for policy in ["d-fcfs", "synergy", "tardis"] {
        let builder = Pool::builder().policy(policy).workers(2);
        let error = builder.layout(PoolLayout::Dedicated).build().unwrap_err();
        assert!(matches!(error, BuildError::NoDispatcher { .. }), "{error}");
        assert!(error.to_string().contains("leave the dedicated layout out"));
    }
}

#[test]
fn a_pool_of_no_use_is_refused() {
    let none = Pool::builder().workers(0).build();
    assert!(matches!(none, Err(BuildError::Workers { workers: 0, .. })));
    let named = |count: usize| {
        (0..count).fold(Pool::builder().workers(1), |builder, at| {
            builder.class(&at.to_string(), ClassOptions::new())
        })
    };
    assert!(named(15).build().is_ok());
    assert!(matches!(
        named(16).build(),
        Err(BuildError::Classes { classes: 16 })
    ));
    assert!(matches!(
        named(4).learn_classes(12).build(),
        Err(BuildError::Classes { classes: 16 })
    ));
    let twice = Pool::builder()
        .workers(1)
        .class("a", ClassOptions::new())
        .class("a", ClassOptions::new());
    assert!(matches!(twice.build(), Err(BuildError::SameName { .. })));
    for own in ["unknown", "learnt-1"] {
        let like_the_pools = Pool::builder().workers(1).learn_classes(2);
        let like_the_pools = like_the_pools.class(own, ClassOptions::new()).build();
        assert!(matches!(like_the_pools, Err(BuildError::SameName { .. })));
    }
    let endless = Pool::builder().workers(1).learn_classes(usize::MAX);
    assert!(matches!(endless.build(), Err(BuildError::Classes { .. })));
    for threads in [usize::MAX, 1 << 40] {
        let endless = Pool::builder().workers(1).blocking_threads(threads);
        let refused = endless.build();
        assert!(matches!(refused, Err(BuildError::BlockingThreads { .. })));
    }
    assert!(Pool::builder().workers(1).name("a\0b").build().is_ok());
    let closed = Pool::builder()
        .workers(1)
        .class("a", ClassOptions::new().workers_at_most(0));
    assert!(matches!(closed.build(), Err(BuildError::NoRoom { .. })));
    for share in [f64::NAN, -1.0, f64::INFINITY, 1e300] {
        let class = ClassOptions::new().share(share);
        let refused = Pool::builder().workers(1).class("a", class).build();
        assert!(
            matches!(refused, Err(BuildError::Share { .. })),
            "share {share}"
        );
    }
    assert!(matches!(
        Pool::builder().workers(1).capacity(0).build(),
        Err(BuildError::Capacity { .. })
    ));
}

#[test]
fn a_class_is_of_its_pool() {
    let (one, other) = (pool(1), pool(1));
    let unknown = one.run("jop", || ()).unwrap_err();
    let JoinError::Refused(SubmitError::UnknownClass { name, known }) = &unknown else {
        panic!("{unknown}")
    };
    assert!(name == "jop" && known.contains(&"job".to_owned()));
    assert!(
        unknown.to_string().contains("did you mean 'job'?"),
        "{unknown}"
    );
    let foreign = other.run(one.class("job").unwrap(), || ()).unwrap_err();
    assert!(matches!(
        foreign,
        JoinError::Refused(SubmitError::OtherPool)
    ));
    let unlearnt = one.submit_unclassified("key", || ());
    assert_eq!(unlearnt.refusal(), Some(&SubmitError::NothingLearns));
    assert_eq!(one.stats().total().submitted, 0);
}

#[test]
fn a_worker_does_not_run_what_would_wait_for_it() {
    let pool = pool(1);
    let handle = pool.clone();
    let inside = pool.run("job", move || handle.run("job", || 1)).unwrap();
    assert!(matches!(
        inside,
        Err(JoinError::Refused(SubmitError::InsidePool))
    ));
    let handle = pool.clone();
    let waits = pool.run("job", move || handle.wait_idle()).unwrap();
    assert_eq!(waits, Err(SubmitError::InsidePool));
    let other = crate::common::pool(1);
    let across = pool
        .run("job", move || other.run("job", || 1).unwrap())
        .unwrap();
    assert_eq!(across, 1);
}

#[test]
fn a_checkpoint_outside_is_an_error_and_inside_none() {
    assert_eq!(checkpoint(), Err(OutsidePool));
    assert_eq!(pool(1).run("job", checkpoint).unwrap(), Ok(()));
}

#[test]
fn a_pool_that_was_shut_down_refuses() {
    let pool = pool(2);
    pool.run("job", || ()).unwrap();
    pool.shutdown(Duration::from_secs(60)).unwrap();
    let late = pool.run("job", || ()).unwrap_err();
    assert!(matches!(late, JoinError::Refused(SubmitError::ShutDown)));
    assert_eq!(pool.stats().total().refused, 1);
    assert!(pool.stats().total().add_up());
    assert_eq!(pool.stats().threads, 0);
}

#[test]
fn the_builder_says_what_it_does_otherwise() {
    let built = |policy: &str, workers| {
        Pool::builder()
            .policy(policy)
            .workers(workers)
            .build()
            .unwrap()
    };
    // A policy that interrupts does so by the time-stamp counter.
    let runs_to_end = [PoolWarning::RunsToEnd { policy: "srpt" }];
    let of_srpt = &runs_to_end[usize::from(Clock::global().is_cheap())..];
    assert_eq!(built("srpt", 2).warnings(), of_srpt);
    assert_eq!(
        built("darc", 1).warnings(),
        [PoolWarning::OneWorker { policy: "darc" }]
    );
    assert_eq!(built("darc-stable", 2).warnings(), []);
}

#[test]
fn a_forked_child_is_told_that_it_has_no_pool() {
    let pool = pool(1);
    pool.run("job", || ()).unwrap();
    let waiting = {
        let gate = crate::common::occupy(&pool, 1);
        (pool.submit("job", || ()), gate)
    };
    // The child makes no assertion, since a panic there would run the parent's test harness: it says by its status what it saw.
    let status = forked(|| {
        let submitted = pool.try_submit("job", || ()).err() == Some(SubmitError::Forked);
        let ran = matches!(
            pool.run("job", || ()),
            Err(JoinError::Refused(SubmitError::Forked))
        );
        let waited = matches!(
            waiting.0.wait(),
            Err(JoinError::Refused(SubmitError::Forked))
        );
        i32::from(!(submitted && ran && waited))
    });
    assert_eq!(status, 0);
    waiting.1.open();
    pool.wait_idle().unwrap();
}

/// How many of this process's descriptors listen at the pool's doors.
#[expect(unsafe_code, reason = "asks each descriptor")]
fn open_doors(pool: &Pool) -> i32 {
    let (metrics, control) = (pool.metrics_addr(), pool.control_path());
    let listens = |descriptor| {
        // SAFETY: only asked for its address, and not closed.
        let (tcp, unix) = unsafe {
            (
                ManuallyDrop::new(TcpListener::from_raw_fd(descriptor)),
                ManuallyDrop::new(UnixListener::from_raw_fd(descriptor)),
            )
        };
        let at = unix.local_addr().ok();
        let is_control = at.is_some_and(|at| at.as_pathname() == control);
        is_control || tcp.local_addr().ok() == metrics
    };
    (3..1024)
        .filter(|&descriptor| listens(descriptor))
        .count()
        .try_into()
        .unwrap()
}

/// As the error says that it should. The threads of that pool are no less than any other's.
#[test]
fn a_child_that_a_job_forks_may_build_a_pool() {
    for policy in ["c-fcfs", "srpt"] {
        let built = move || {
            let builder = Pool::builder().policy(policy).workers(2);
            builder.class("job", ClassOptions::new()).build().unwrap()
        };
        let in_child = move || {
            let own = built();
            let jobs: Vec<_> = (0..100).map(|at| own.submit("job", move || at)).collect();
            let sum: i32 = jobs.into_iter().map(|job| job.wait().unwrap()).sum();
            let in_child_of_child = own.run("job", move || {
                forked(move || built().run("job", || 8).unwrap())
            });
            own.shutdown(Duration::MAX).unwrap();
            i32::from(sum == 4_950) + in_child_of_child.unwrap()
        };
        let pool = built();
        assert_eq!(
            pool.run("job", move || forked(in_child)).unwrap(),
            9,
            "{policy}"
        );
    }
}

#[test]
fn a_forked_child_keeps_no_door_of_its_parents() {
    let directory = tempfile::tempdir().unwrap();
    let pool = Pool::builder()
        .workers(1)
        .control(&*directory.path().join("pool.sock"))
        .metrics("127.0.0.1:0".parse().unwrap())
        .build()
        .unwrap();
    assert!(open_doors(&pool) >= 2);
    assert_eq!(forked(|| open_doors(&pool)), 0);
}

#[test]
fn pools_without_a_name_are_told_apart() {
    let [one, other] = [pool(1), pool(1)].map(|pool| format!("{pool:?}"));
    assert_ne!(one, other);
}

/// Runs `body` in a forked child, which ends with its status.
#[expect(unsafe_code, reason = "fork, _exit and waitpid")]
fn forked(body: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the child calls the pool, which takes no lock there, and `_exit`.
    let child = unsafe { libc::fork() };
    assert!(child >= 0, "a child");
    if child == 0 {
        let status = body();
        // SAFETY: ends the child without its parent's destructors.
        unsafe { libc::_exit(status) };
    }
    let mut status = 0;
    // SAFETY: waits for this child.
    let waited = unsafe { libc::waitpid(child, &mut status, 0) };
    assert_eq!(waited, child);
    assert!(libc::WIFEXITED(status), "the child ended by itself");
    libc::WEXITSTATUS(status)
}

/// `fn main() -> Result<(), Box<dyn Error>>` prints `Debug`.
#[test]
fn a_main_prints_the_sentence_of_every_error() {
    let pool = pool(1);
    let unknown = pool.class("jbo").unwrap_err();
    let panicked = pool.run("job", || panic!("no luck")).unwrap_err();
    let refused_job: JoinError = pool.submit("jbo", || ()).wait().unwrap_err();
    let taken = Pool::builder().control("/proc/no.sock").build();
    let taken = taken.map(|_| ()).unwrap_err();
    let errors: Vec<(Box<dyn std::error::Error>, &str)> = vec![
        (refused("synergi").into(), "did you mean 'synergy'?"),
        (refused("ps").into(), "headway sim"),
        (unknown.into(), "did you mean 'job'?"),
        (panicked.to_string().into(), "no luck"),
        (refused_job.to_string().into(), "no class is called 'jbo'"),
        (checkpoint().unwrap_err().into(), "no job of a pool"),
        (taken.into(), "choose another path"),
    ];
    for (error, part) in errors {
        let shown = format!("Error: {error:?}");
        assert!(shown.contains(part) && !shown.contains('{'), "{shown}");
    }
    // As values too, whose results a program may not box.
    let waits = pool.shutdown(Duration::ZERO);
    assert!(waits.is_ok());
    let late = pool.submit("job", || ()).wait().unwrap_err();
    assert_eq!(format!("{late:?}"), late.to_string());
}
