//! Signals that come while a server starts.

use super::children::TestChild;
use super::hosting::until;
use super::words;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};

#[test]
fn a_signal_while_a_store_is_filled_leaves_nothing_behind() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let folder = tempfile::tempdir().unwrap();
        let made = || std::fs::read_dir(folder.path()).unwrap().count();
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        // More keys than are written before the signal comes.
        let args = "serve --listen udp://127.0.0.1:0 --app kv --keys 100000000 --no-ctl";
        command.args(words(args)).env("TMPDIR", folder.path());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = TestChild::start(&mut command);
        until("the store's folder is made", || made() > 0);
        child.signal(signal);
        assert_eq!(child.wait().signal(), Some(signal));
        assert_eq!(made(), 0);
    }
}
