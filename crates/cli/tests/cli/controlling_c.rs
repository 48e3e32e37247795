//! `ctl` inspects and tunes a server of a C program as it does `headway serve`.

use super::standing::shown_standing;
use super::{headway, json};
use crate::children::TestChild;
use headway_net::header::{Flag, Header, Status};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::UdpSocket;
use std::path::{Path, PathBuf};
use std::process::{ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::Duration;
use tempfile::TempDir;

/// `libheadway`, as it lies beside the tests.
fn library() -> PathBuf {
    let tests = std::env::current_exe().unwrap();
    tests.with_file_name("libheadway_capi.so")
}

/// Compiles the C program into a folder, with the library beside it.
fn compiled(folder: &Path) -> PathBuf {
    let capi = Path::new(env!("CARGO_MANIFEST_DIR")).join("../capi");
    for name in ["libheadway.so", "libheadway.so.1"] {
        std::os::unix::fs::symlink(library(), folder.join(name)).unwrap();
    }
    let program = folder.join("controlled");
    let output = Command::new(std::env::var_os("CC").unwrap_or_else(|| "cc".into()))
        .args(["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I"])
        .arg(capi.join("include"))
        .arg(capi.join("tests/c/controlled.c"))
        .arg("-o")
        .arg(&program)
        .arg("-L")
        .arg(folder)
        .arg(format!("-Wl,-rpath,{}", folder.display()))
        .args(["-lheadway", "-Wl,-z,now"])
        .output()
        .expect("there is a C compiler");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{said}");
    program
}

/// The program, running, with the ends of its pipes.
struct ControlledProgram {
    child: TestChild,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    address: String,
}

impl ControlledProgram {
    fn start(program: &Path, control: &str, runtime: &Path) -> Self {
        let mut command = Command::new(program);
        command
            .arg(control)
            .env("XDG_RUNTIME_DIR", runtime)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let mut child = TestChild::start(&mut command);
        let (input, output) = (child.stdin(), BufReader::new(child.stdout()));
        let mut program = Self {
            child,
            input: Some(input),
            output,
            address: String::new(),
        };
        let line = program.line();
        program.address = line.strip_prefix("listening udp://").expect(&line).into();
        program
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// What the program says of these parameters: the code and the error.
    fn set(&mut self, parameters: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{parameters}").unwrap();
        self.line()
    }

    fn socket(&self) -> UdpSocket {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(&self.address).unwrap();
        socket
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        socket
    }

    /// Asks this many times, and waits for the answers.
    fn ask(&self, requests: u32) {
        let socket = self.socket();
        for index in 0..requests {
            let header = Header {
                class: 0,
                flag: Flag::REQUEST,
                index,
                time_ns: 0,
            };
            socket.send(&header.encode()).unwrap();
            let mut datagram = [0; 64];
            let length = socket.recv(&mut datagram).expect("an answer in time");
            let (header, _) = Header::parse(&datagram[..length]).unwrap();
            assert_eq!((header.index, header.flag.status()), (index, Status::Ok));
        }
    }

    /// Ends the program; what it says of its workers.
    fn stop(mut self) -> String {
        drop(self.input.take());
        let mut said = String::new();
        self.output.read_to_string(&mut said).unwrap();
        assert!(self.child.wait().success(), "{said}");
        said
    }
}

fn status(path: &str) -> serde_json::Value {
    json(&["ctl", "status", "--server", path, "--format", "json"])
}

/// Runs `headway ctl`, which looks for this user's servers in this folder.
fn among(runtime: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    let command = command.args(args).env("XDG_RUNTIME_DIR", runtime);
    command.output().expect("headway runs")
}

fn folder_with_program() -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let program = compiled(folder.path());
    (folder, program)
}

#[test]
fn a_server_of_a_c_program_says_what_it_does_and_is_tuned() {
    let (folder, program) = folder_with_program();
    let path = folder.path().join("ctl.sock").display().to_string();
    let mut server = ControlledProgram::start(&program, &path, folder.path());
    server.ask(7);
    let said = status(&path);
    assert_eq!(said["pid"], server.child.id());
    assert_eq!(said["policy"], "concord");
    assert_eq!(said["listen"], format!("udp://{}", server.address));
    assert_eq!(said["answered"], 7);
    assert_eq!(said["classes"][0]["class"], "short");
    let by_worker = said["workers"].as_array().unwrap().iter();
    let by_worker: Vec<u64> = by_worker
        .map(|worker| worker["answered"].as_u64().unwrap())
        .collect();
    assert_eq!(by_worker.iter().sum::<u64>(), 7);

    let output = headway(&["ctl", "set", "--server", &path, "q=50us"]);
    assert_eq!(String::from_utf8_lossy(&output.stdout), "q: 20us → 50us\n");
    assert_eq!(server.set("q=30us"), "0");
    assert_eq!(status(&path)["params"]["q"], "30us");
    assert_eq!(status(&path)["changes"], 2);
    let refused = server.set("q=20us,quantum=1");
    assert!(
        refused.starts_with("-2 ") && refused.contains("quantum"),
        "{refused}"
    );
    assert_eq!(status(&path)["params"]["q"], "30us", "all change, or none");

    let second = Command::new(&program).arg(&path).output().unwrap();
    let why = String::from_utf8_lossy(&second.stderr);
    assert_eq!(second.status.code(), Some(1), "{why}");
    for part in [
        "headway_options.control: ",
        "a running process listens",
        &path,
    ] {
        assert!(why.contains(part), "{why}");
    }

    let workers = server.stop();
    for (index, answered) in by_worker.iter().enumerate() {
        let line = format!("worker {index}: answered {answered}, own {answered}, stolen 0");
        assert!(workers.contains(&line), "{workers}");
    }
    assert!(
        !fs::exists(&path).unwrap(),
        "the socket goes with the server"
    );
}

#[test]
fn a_server_of_a_c_program_is_found_by_its_port_if_it_wants_to_be() {
    let (folder, program) = folder_with_program();
    let server = ControlledProgram::start(&program, "auto", folder.path());
    let port = server.address.rsplit(':').next().unwrap().to_owned();
    let output = among(folder.path(), &["ctl", "status", "--server", &port]);
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && said.contains("policy concord"),
        "{output:?}"
    );
    server.stop();
    let output = among(folder.path(), &["ctl", "status", "--server", &port]);
    assert_eq!(output.status.code(), Some(2), "{output:?}");
}

/// Four long requests at least, and two workers: two are suspended at any time, until they are let go on.
#[test]
fn suspended_requests_of_a_c_program_show_where_they_stand() {
    const LONGS: u32 = 4;
    let (folder, program) = folder_with_program();
    let path = folder.path().join("ctl.sock").display().to_string();
    let mut server = ControlledProgram::start(&program, &path, folder.path());
    let socket = server.socket();
    let mut sent = 0;
    let mut send = || {
        let header = Header {
            class: 1,
            flag: Flag::REQUEST,
            index: sent,
            time_ns: 0,
        };
        socket.send(&header.encode()).unwrap();
        sent += 1;
    };
    for _ in 0..LONGS {
        send();
    }
    let told = shown_standing(&path, "innermost_of_a_long", send);
    let request = told
        .split("\n\n")
        .find(|request| request.contains("innermost_of_a_long"));
    let request = request.unwrap_or_default();
    assert!(request.starts_with("long, request "), "{told}");
    assert_eq!(request.matches("middle_of_a_long").count(), 4, "{told}");
    let at = |name: &str| {
        request
            .find(name)
            .unwrap_or_else(|| panic!("{name}: {told}"))
    };
    assert!(at("innermost_of_a_long") < at("middle_of_a_long"), "{told}");
    assert!(at("middle_of_a_long") < at("handle_request"), "{told}");

    writeln!(server.input.as_mut().unwrap(), "go").unwrap();
    let mut datagram = [0; 64];
    for _ in 0..sent {
        socket.recv(&mut datagram).expect("an answer in time");
    }
    let output = headway(&["ctl", "stacks", "--server", &path]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(said, "no request is suspended\n");
    server.stop();
}
