//! `ctl status --watch` beside a server that goes away.

use super::controlling::controlled;
use crate::children::TestChild;
use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

/// A watch of the server at this control socket, which has printed a status.
fn watching(path: &str) -> TestChild {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args([
        "ctl", "status", "--server", path, "--format", "json", "--watch", "10ms",
    ]);
    let mut watch = TestChild::start(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut out = BufReader::new(watch.stdout());
    let mut line = String::new();
    out.read_line(&mut line).unwrap();
    assert!(line.starts_with('{'), "{line}");
    // A closed pipe would end the watch.
    std::thread::spawn(move || std::io::copy(&mut out, &mut std::io::sink()));
    watch
}

fn end(mut watch: TestChild) -> (Option<i32>, String) {
    let mut said = String::new();
    watch.stderr().read_to_string(&mut said).unwrap();
    (watch.wait().code(), said)
}

#[test]
fn a_watch_ends_with_its_server_and_is_no_usage_error() {
    let (server, _folder, path) = controlled("c-fcfs");
    let watch = watching(&path);
    server.signal(libc::SIGTERM);
    assert_eq!(server.end().0, Some(0));
    let ended = format!("the server or pool at {path} has ended\n");
    assert_eq!(end(watch), (Some(0), ended));
}

#[test]
fn a_watch_of_a_server_that_was_killed_fails_and_is_no_usage_error() {
    let (mut server, _folder, path) = controlled("c-fcfs");
    let watch = watching(&path);
    server.kill();
    let (status, said) = end(watch);
    assert_eq!(status, Some(1), "{said}");
    assert!(
        said.starts_with("error: ") && said.contains(&path),
        "{said}"
    );
}
