//! The example is started, asked, and stopped by a signal.

#[path = "../../tests/started/mod.rs"]
#[allow(dead_code, reason = "it ends by a signal, and is asked in turn")]
mod started;

use headway::prelude::*;
use started::Example;
use std::process::{Command, Stdio};

#[test]
fn whole_drains_on_a_signal() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway-whole-example"));
    let mut example = Example::start(command.stderr(Stdio::piped()));
    let answered = |answer: &str| (Status::Ok, answer.to_owned());
    assert_eq!(example.ask(0, "ping"), answered("pong"));
    assert_eq!(example.ask(1, "sum"), answered("5000050000"));
    let id = example.child.id().to_string();
    assert!(Command::new("kill").arg(&id).status().unwrap().success());
    let ended = example.child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(ended.status.success(), "{said}");
    assert!(said.contains("received 2, answered 2 (served 2,"), "{said}");
}
