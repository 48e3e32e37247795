//! A process that has as many files open as it may: its sockets say so once, and answer again when a descriptor is free.

use headway_ops::http::{HttpServer, PROMETHEUS_TEXT, Site};
use headway_ops::place::SocketKind;
use headway_ops::protocol::{CtlRequest, CtlResponse};
use headway_ops::socket::{ControlPlace, ControlSocket, Responder};
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::socket::{
    AddressFamily, SockFlag, SockType, SockaddrStorage, UnixAddr, connect, socket as socket_of,
};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::thread;
use std::time::Duration;

/// The control socket of the process that has few files.
const ROLE: &str = "HEADWAY_OPS_FEW_FILES";

const LIMIT: Duration = Duration::from_secs(60);

struct Nothing;

impl Responder for Nothing {
    fn respond(&self, _: CtlRequest) -> CtlResponse {
        Ok(Value::Null)
    }
}

impl Site for Nothing {
    fn page(&self) -> &'static str {
        "page"
    }

    fn status(&self) -> Value {
        Value::Null
    }

    fn metrics(&self) -> String {
        "metrics".into()
    }

    fn metrics_type(&self) -> &'static str {
        PROMETHEUS_TEXT
    }
}

/// Serves at both sockets, and may open nothing more until its standard input has a line.
fn serves_with_few_files(path: &Path) {
    let socket = ControlSocket::bind(&path.into(), SocketKind::Server, "").unwrap();
    let _control = socket.unwrap().answer(Nothing).unwrap();
    let http = HttpServer::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let http = http.answer(Nothing).unwrap();
    // The clients have their descriptors; the other ends get none.
    let client = |family| socket_of(family, SockType::Stream, SockFlag::empty(), None).unwrap();
    let (control, page) = (client(AddressFamily::Unix), client(AddressFamily::Inet));
    let (few, hard) = getrlimit(Resource::RLIMIT_NOFILE).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, 3, hard).unwrap();
    connect(control.as_raw_fd(), &UnixAddr::new(path).unwrap()).unwrap();
    connect(page.as_raw_fd(), &SockaddrStorage::from(http.addr())).unwrap();
    // No socket needs no descriptor.
    let none = ControlSocket::bind(&ControlPlace::Off, SocketKind::Server, "");
    assert!(none.unwrap().is_none());
    std::io::stdin().read_line(&mut String::new()).unwrap();
    setrlimit(Resource::RLIMIT_NOFILE, few, hard).unwrap();
    let (mut control, mut page) = (UnixStream::from(control), TcpStream::from(page));
    let mut answer = String::new();
    control.write_all(b"{\"command\":\"status\"}\n").unwrap();
    BufReader::new(control).read_line(&mut answer).unwrap();
    assert_eq!(answer, "{\"ok\":null}\n");
    page.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").unwrap();
    answer.clear();
    page.read_to_string(&mut answer).unwrap();
    assert!(answer.ends_with("metrics"), "{answer}");
}

#[test]
fn sockets_without_a_free_descriptor_say_so_once_and_answer_later() {
    if let Some(path) = std::env::var_os(ROLE) {
        return serves_with_few_files(path.as_ref());
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ctl.sock");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--nocapture", "--test-threads=1"])
        .env(ROLE, &path)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, said) = channel();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    thread::spawn(move || {
        stderr
            .lines()
            .try_for_each(|line| lines.send(line.unwrap()))
    });
    let first = [(); 2].map(|()| {
        let line = said.recv_timeout(LIMIT);
        line.unwrap_or_else(|_| {
            child.kill().unwrap();
            panic!("both sockets say what is missing");
        })
    });
    let control = format!("the control socket {}", path.display());
    for listener in [control.as_str(), "http://127.0.0.1:"] {
        let of_it = first.iter().filter(|line| line.contains(listener));
        assert_eq!(of_it.count(), 1, "{first:?}");
    }
    assert!(
        first.iter().all(|line| line.contains("`ulimit -n`")),
        "{first:?}"
    );
    // Each tries again meanwhile, and says nothing more.
    thread::sleep(Duration::from_millis(350));
    child.stdin.take().unwrap().write_all(b"\n").unwrap();
    let later: Vec<String> = said.iter().collect();
    assert!(child.wait().unwrap().success(), "{later:?}");
    assert_eq!(later, [""; 0]);
}
