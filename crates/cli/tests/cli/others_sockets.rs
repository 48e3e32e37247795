//! Sockets that another user made where the command looks for its own.

use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixListener;
use std::process::Command;

const STRANGER: u32 = 65_534;

#[test]
fn a_socket_of_another_user_is_not_asked() {
    let runtime = tempfile::tempdir().unwrap();
    let folder = runtime.path().join("headway");
    std::fs::create_dir(&folder).unwrap();
    let names = ["7001.sock", "7100.rack", "host.sock"];
    let sockets = names.map(|name| {
        let path = folder.join(name);
        let socket = UnixListener::bind(&path).unwrap();
        socket.set_nonblocking(true).unwrap();
        (path, socket)
    });
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    if chown(&folder, Some(STRANGER), None).is_err() {
        return println!("SKIPPED a_socket_of_another_user_is_not_asked: it needs root");
    }
    let asks = |args: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        command.args(super::words(args));
        command.env("XDG_RUNTIME_DIR", runtime.path());
        let done = command.output().unwrap();
        (done.status.code(), String::from_utf8(done.stderr).unwrap())
    };
    let all = [
        "ctl status --server 7001",
        "rack status --switch 7100",
        "host status",
        "run --batch pricer -- true",
        "serve --host kv --listen udp://127.0.0.1:0 --no-ctl",
    ];
    for args in all {
        let (status, said) = asks(args);
        assert!(matches!(status, Some(1 | 2)), "{args}: {said}");
        let why = format!("belongs to user {STRANGER}, not to 0");
        assert!(
            said.contains(&why) && said.contains("it is not asked"),
            "{args}: {said}"
        );
    }
    // The folder is the command's own, and the sockets in it are not.
    chown(&folder, Some(0), None).unwrap();
    for (path, _) in &sockets {
        chown(path, Some(STRANGER), None).unwrap();
    }
    for args in all {
        let (_, said) = asks(args);
        assert!(said.contains("it is not asked"), "{args}: {said}");
    }
    for (path, socket) in &sockets {
        assert!(socket.accept().is_err(), "{} was asked", path.display());
    }
}

#[test]
fn a_peer_that_stands_still_is_told_by_the_time_it_had() {
    let folder = tempfile::tempdir().unwrap();
    let sockets = ["server.sock", "host.sock.ctl"].map(|name| folder.path().join(name));
    let _listening = sockets
        .each_ref()
        .map(|path| UnixListener::bind(path).unwrap());
    let server = sockets[0].to_str().unwrap();
    let host = folder.path().join("host.sock");
    let asked = [
        ["ctl", "status", "--server", server],
        ["rack", "status", "--switch", server],
        ["host", "status", "--socket", host.to_str().unwrap()],
    ];
    let asking = asked.map(|args| {
        std::thread::spawn({
            let args = args.map(str::to_owned);
            move || super::headway(&args.each_ref().map(String::as_str))
        })
    });
    for asking in asking {
        let done = asking.join().unwrap();
        let said = String::from_utf8(done.stderr).unwrap();
        assert_eq!(done.status.code(), Some(1), "{said}");
        assert!(said.contains("did not answer within 5 s"), "{said}");
    }
}
