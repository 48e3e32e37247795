//! Threads in user space that compute without probes: the daemon's signal takes their kthread off its core.

use crate::apps::Work;
use crate::stage::{Stage, cores_of, may, report, turn, until};
use headway_host::client::{ClientOptions, HostClient};
use headway_kthread::CoreSource;
use headway_threads::{Migration, Runtime, may_stop};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

/// The policy moves nobody away, so another application gets a core only where the signal stops a kthread in the middle of a thread. That goes on later.
#[test]
fn threads_without_probes_leave_their_core_by_signal() {
    let _turn = turn();
    if !may("threads_without_probes_leave_their_core_by_signal") {
        return;
    }
    let stage = Stage::new();
    let daemon = stage.daemon_of("shenango,evict=100s");
    let cores = daemon.cores().dealt.len();
    let options = ClientOptions {
        may_stop,
        ..ClientOptions::new("web", cores)
    };
    let client = Arc::new(HostClient::register(&stage.socket(), &options).unwrap());
    // SAFETY: what the threads run uses no thread-local variable.
    #[expect(unsafe_code, reason = "the threads may change kthreads")]
    let migration = unsafe { Migration::allow() };
    let source: Arc<HostClient> = Arc::clone(&client);
    let runtime = Runtime::builder()
        .source(source, migration)
        .start()
        .unwrap();
    let done = Arc::new(AtomicBool::new(false));
    let computes: Vec<_> = (0..2 * cores)
        .map(|_| {
            let done = Arc::clone(&done);
            runtime.spawn(move || {
                let mut turns = 0_u64;
                while !done.load(Ordering::Relaxed) {
                    turns += 1;
                }
                turns
            })
        })
        .collect();
    until("it has every core", || {
        cores_of(&report(&daemon), "web") == Some(cores)
    });
    let work = Work::register("kv", 1, &stage.socket());
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| work.run(0, &|| ended.load(Ordering::Acquire)));
        for round in 1..=20 {
            work.put(10);
            until("the other application works", || {
                work.taken.load(Ordering::Acquire) == 10 * round
            });
        }
        ended.store(true, Ordering::Release);
        work.client.close();
    });
    let told = report(&daemon);
    let web = told.apps.iter().find(|app| app.name == "web").unwrap();
    assert!(web.revocations > 0 && web.evictions == 0, "{web:?}");
    done.store(true, Ordering::Relaxed);
    for thread in computes {
        thread.join().expect("no panic");
    }
    drop(runtime);
    drop(client);
    until("both are gone", || report(&daemon).apps.is_empty());
    daemon.stop();
}
