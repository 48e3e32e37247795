//! Registrations and daemons that are refused.

use crate::stage::{Stage, may, report, settings, turn};
use headway_host::client::{ClientError, ClientOptions, HostClient};
use headway_host::daemon::HostDaemon;
use headway_host::program;
use std::os::unix::net::UnixDatagram;

fn refusal(stage: &Stage, options: &ClientOptions) -> String {
    match HostClient::register(stage.socket(), options) {
        Err(ClientError::Refused { why, .. }) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_is_refused_in_a_sentence_and_the_rest_goes_on() {
    let _turn = turn();
    if !may("what_cannot_be_is_refused_in_a_sentence_and_the_rest_goes_on") {
        return;
    }
    let stage = Stage::new();
    let error = HostClient::register(stage.socket(), &ClientOptions::new("kv", 1)).unwrap_err();
    assert!(
        error.to_string().contains("start one by 'headway host'"),
        "{error}"
    );
    let daemon = stage.daemon();
    let second = stage.try_daemon().unwrap_err();
    assert!(
        second.to_string().contains("another daemon listens"),
        "{second}"
    );
    let unknown = refusal(&stage, &ClientOptions::new("ky", 1));
    assert!(unknown.contains("there are: kv, web, batch"), "{unknown}");
    let greedy = ClientOptions {
        guaranteed: Some(2),
        ..ClientOptions::new("kv", 2)
    };
    let greedy = refusal(&stage, &greedy);
    assert!(
        greedy.contains("asks for 2 guaranteed cores, and has 1"),
        "{greedy}"
    );
    assert!(refusal(&stage, &ClientOptions::new("kv", 0)).contains("no core at all"));
    let kv = HostClient::register(stage.socket(), &ClientOptions::new("kv", 1)).unwrap();
    let twice = refusal(&stage, &ClientOptions::new("kv", 1));
    assert!(twice.contains("registered already"), "{twice}");
    let unlike = program::register(&stage.socket(), "web", None).unwrap_err();
    assert!(
        unlike.to_string().contains("must be of class batch"),
        "{unlike}"
    );
    assert_eq!(report(&daemon).apps.len(), 1, "only kv has a place");
    drop(kv);
    daemon.stop();
    // A path with a file that is no daemon's socket.
    let other = UnixDatagram::bind(stage.socket()).unwrap();
    drop(other);
    assert!(stage.try_daemon().unwrap().took_over());
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let _turn = turn();
    let stage = Stage::new();
    let with = |change: &dyn Fn(&mut headway_host::daemon::DaemonSettings)| {
        let mut settings = settings(&stage.socket(), "shenango");
        change(&mut settings);
        HostDaemon::check(&settings).unwrap_err().to_string()
    };
    assert!(with(&|it| it.apps[0].guaranteed = 999).contains("guarantee"));
    assert!(with(&|it| it.apps[1].name = "kv".into()).contains("twice"));
    assert!(with(&|it| it.cores = Some(vec![999])).contains("no core 999"));
    assert!(with(&|it| it.policy = "caladan".parse().unwrap()).contains("caladan"));
    assert!(with(&|it| it.sysfs = "/nowhere".into()).contains("/nowhere"));
    let one = with(&|it| {
        it.shares = Some(false);
        it.cores = Some(vec![0]);
        it.sysfs = one_core(&stage);
    });
    assert!(one.contains("--share-core"), "{one}");
}

/// A machine of one core.
fn one_core(stage: &Stage) -> std::path::PathBuf {
    let sysfs = stage.socket().with_extension("sys");
    let cpu = sysfs.join("devices/system/cpu");
    std::fs::create_dir_all(&cpu).unwrap();
    std::fs::write(cpu.join("online"), "0\n").unwrap();
    sysfs
}
