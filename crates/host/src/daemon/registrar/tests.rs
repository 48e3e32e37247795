//! The registrar alone, with a pass thread that never answers.

use std::path::Path;

use super::super::inbox::{self, DaemonInbox};
use super::*;

/// A registrar, and what it asks of the pass thread.
fn registrar_at(socket: &Path) -> (Registrar, DaemonInbox) {
    let settings = DaemonSettings {
        socket: socket.into(),
        policy: "shenango".parse().unwrap(),
        apps: vec![AppRule {
            name: "kv".into(),
            guaranteed: 0,
            most: None,
            kind: AppKind::Latency,
            users: Vec::new(),
            groups: Vec::new(),
            network: None,
        }],
        cores: None,
        shares: None,
        tick_ns: 1,
        device: None,
        sysfs: "/sys".into(),
    };
    let (outbox, inbox) = inbox::pair().unwrap();
    let registrar = Registrar::new(
        HostListener::bind(socket, &settings.apps).unwrap(),
        outbox,
        Arc::new(RwLock::new(settings)),
        vec![nix::sched::sched_getcpu().unwrap()],
        None,
        Arc::new(event().unwrap()),
        Clock::global(),
    )
    .unwrap();
    (registrar, inbox)
}

#[test]
fn a_registration_that_timed_out_is_never_admitted_later() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("host.sock");
    let (mut registrar, inbox) = registrar_at(&socket);
    let application = packet::connect_to(&socket).unwrap();
    let asks = br#"{"register":{"name":"kv","kthreads":1}}"#;
    packet::send(&application, asks, &[]).unwrap();
    registrar.step([LISTENER].into_iter());
    let id = registrar.connections.new_id() - 2;
    registrar.step([id].into_iter());
    let answer = packet::receive(&application, true).unwrap().unwrap();
    let answer = DaemonMessage::parse(&answer.bytes).unwrap();
    assert!(matches!(answer, DaemonMessage::Refused(_)), "{answer:?}");
    let Some(DaemonOrder::Admit { claim, .. }) = inbox.next() else {
        panic!("it was asked for");
    };
    assert!(!claim.take(), "the pass thread must not admit it now");
}

/// After a crash the daemon after the next has to know them.
#[test]
fn programs_that_are_not_resumed_yet_are_remembered() {
    let folder = tempfile::tempdir().unwrap();
    let (mut registrar, _inbox) = registrar_at(&folder.path().join("host.sock"));
    let waits = KnownProgram {
        name: "pricer".into(),
        pid: 7,
        uid: Some(8),
        started: 9,
        home: vec![0],
        most: 1,
        groups: Vec::new(),
    };
    registrar.programs = vec![waits.clone()];
    registrar.remember();
    let known = state::read(&registrar.state, registrar.connections.own_uid);
    assert_eq!(known, [waits]);
}
