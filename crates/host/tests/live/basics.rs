//! Applications that keep to the protocol.

use crate::apps::Work;
use crate::programs::spawn_program;
use crate::stage::{Stage, cores_of, masks, may, report, turn, until};
use headway_kthread::CoreSource;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

/// Runs an application of two kthreads within this process while `body` looks at it.
fn with_app(stage: &Stage, name: &str, body: impl FnOnce(&Work)) {
    let work = Work::register(name, 2, &stage.socket());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for kthread in 0..work.client.kthreads() {
            let (work, ended) = (Arc::clone(&work), &ended);
            scope.spawn(move || work.run(kthread, &|| ended.load(Ordering::Acquire)));
        }
        body(&work);
        ended.store(true, Ordering::Release);
        work.client.close();
    });
}

#[test]
fn work_gets_a_core_and_none_is_kept_without_work() {
    let _turn = turn();
    if !may("work_gets_a_core_and_none_is_kept_without_work") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    with_app(&stage, "kv", |work| {
        for round in 1..=200 {
            work.put(50);
            until("all is done", || {
                work.taken.load(Ordering::Acquire) == 50 * round
            });
        }
        until("the cores are given back", || {
            cores_of(&report(&daemon), "kv") == Some(0)
        });
        assert!(report(&daemon).apps[0].grants >= 1);
    });
    until("it is gone", || report(&daemon).apps.is_empty());
    daemon.stop();
}

/// Two applications in one process, one of them batch: both make progress, and the latency-critical one comes first.
#[test]
fn a_batch_application_gives_its_cores_away_and_gets_them_back() {
    let _turn = turn();
    if !may("a_batch_application_gives_its_cores_away_and_gets_them_back") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut batch = stage.spawn("batch");
    until("batch has a core", || {
        cores_of(&report(&daemon), "batch").is_some()
    });
    with_app(&stage, "kv", |work| {
        for round in 1..=100 {
            work.put(100);
            until("all is done", || {
                work.taken.load(Ordering::Acquire) == 100 * round
            });
        }
    });
    let told = report(&daemon);
    assert!(told.grant.count > 0 && told.grant.p50_ns > 0, "{told:?}");
    batch.kill();
    until("both are gone", || report(&daemon).apps.is_empty());
    daemon.stop();
}

/// A program without support for the daemon: its threads move to its cores, and return when the daemon ends.
#[test]
fn a_program_runs_on_the_cores_that_are_left() {
    let _turn = turn();
    if !may("a_program_runs_on_the_cores_that_are_left") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon();
    let mut command = Command::new("sh");
    command.args(["-c", "while :; do :; done & while :; do :; done"]);
    let before = masks(std::process::id())[0].clone();
    let mut child = spawn_program(command, &stage, "batch");
    let pid = child.id();
    until("it has every core that it can use", || {
        cores_of(&report(&daemon), "batch").is_some_and(|cores| cores >= 2)
    });
    with_app(&stage, "kv", |work| {
        let (mut confined, mut put) = (false, 0);
        until("the program is confined to fewer cores", || {
            work.put(2_000);
            put += 2_000;
            confined |= masks(pid).iter().any(|mask| !mask.contains(['-', ',']));
            until("all is done", || work.taken.load(Ordering::Acquire) == put);
            // Many more rounds than one, in which cores come and go.
            confined && put >= 600_000
        });
    });
    assert!(
        report(&daemon).revoke.count > 0,
        "nothing was taken from the program"
    );
    daemon.stop();
    assert!(
        masks(pid).iter().all(|mask| *mask == before),
        "{:?} and not {before}",
        masks(pid)
    );
    child.kill();
}

/// Whether kthreads wait for their first core, have given it back, or sleep on it: when the application ends, each of them continues, and none waits
/// again.
#[test]
fn an_application_that_ends_lets_every_kthread_go() {
    let _turn = turn();
    if !may("an_application_that_ends_lets_every_kthread_go") {
        return;
    }
    for policy in ["shenango", "static", "interval"] {
        for name in ["kv", "web"] {
            let stage = Stage::new();
            let daemon = stage.daemon_of(policy);
            let work = Work::register(name, 2, &stage.socket());
            let (ended, gone) = (AtomicBool::new(false), AtomicUsize::new(0));
            thread::scope(|scope| {
                for kthread in 0..2 {
                    let (work, ended, gone) = (Arc::clone(&work), &ended, &gone);
                    scope.spawn(move || {
                        work.run(kthread, &|| ended.load(Ordering::Acquire));
                        let grant = work.client.enter(kthread);
                        work.client.leave(kthread, grant, &mut || true);
                        work.client.exit();
                        gone.fetch_add(1, Ordering::AcqRel);
                    });
                }
                until("they have come", || {
                    (0..2).all(|kthread| work.client.line(kthread).tid().is_some())
                });
                // Lets kthreads that have cores find no work and sleep.
                thread::sleep(Duration::from_millis(5));
                ended.store(true, Ordering::Release);
                work.client.close();
                until("they have gone", || gone.load(Ordering::Acquire) == 2);
            });
            daemon.stop();
        }
    }
}
