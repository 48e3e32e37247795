//! Processes of other users at the daemon's socket.

use crate::stage::{Stage, may, rule, settings, turn, until};
use headway_host::client::{ClientOptions, HostClient};
use headway_host::daemon::HostDaemon;
use headway_machine::Clock;
use headway_policy::host::AppKind;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use std::fs::{self, Permissions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, Stdio};

/// A user that no settings name, and one that they do.
const STRANGER: u32 = 65_534;
const NAMED: u32 = 65_533;

/// Does what it is told, a line at a time, and says what came of it.
const SCRIPT: &str = r#"
import array, os, socket, struct, sys, time
kept = []
def connect(path):
    made = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    made.connect(path)
    made.settimeout(60)
    kept.append(made)
    return made
def lingering():
    listener = socket.create_server(("127.0.0.1", 0))
    stream = socket.create_connection(listener.getsockname())
    kept.append(listener.accept())
    stream.setblocking(False)
    try:
        while True:
            stream.send(bytes(65536))
    except BlockingIOError:
        pass
    stream.setblocking(True)
    stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
    return stream
def rights(fds):
    return [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))]
def send(made, bytes, fds):
    try:
        made.sendmsg([bytes], rights(fds))
    except (BrokenPipeError, ConnectionResetError):
        pass
def told(made):
    # Whoever answers and hangs up before it read all is told of by its end first.
    for _ in range(2):
        try:
            return made.recv(4096).decode() or "hung up"
        except ConnectionResetError:
            pass
    return "hung up"
for line in sys.stdin:
    what, count, path = line.split()
    answers = set()
    try:
        for _ in range(int(count)):
            made = connect(path)
            if what == "silent":
                continue
            if what == "fds":
                send(made, b"{}", [0, 0, 0, 0, 0])
            if what == "lingers":
                # Whoever closes it last waits: the daemon, or this child.
                if os.fork() == 0:
                    stream = lingering()
                    send(made, b'{"resume":{"name":"web","kthreads":1}}', [stream.fileno()])
                    stream.close()
                    time.sleep(3600)
            answers.add(told(made))
        if what == "silent":
            for made in kept[int(count) - 4:]:
                answers.add(told(made))
    except OSError as error:
        answers.add(type(error).__name__)
    print(" ".join(sorted(answers)).replace("\n", " "), flush=True)
"#;

/// A process of another user.
struct OtherUser {
    child: Child,
    input: ChildStdin,
    output: BufReader<std::process::ChildStdout>,
}

impl OtherUser {
    fn new(uid: u32) -> Self {
        let mut command = Command::new("python3");
        command
            .args(["-c", SCRIPT])
            .uid(uid)
            .gid(uid)
            .process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take(), child.stdout.take());
        Self {
            child,
            input: input.unwrap(),
            output: BufReader::new(output.unwrap()),
        }
    }

    /// Does `what` so many times; returns the different answers.
    fn tries(&mut self, what: &str, times: usize, stage: &Stage) -> String {
        writeln!(self.input, "{what} {times} {}", stage.socket().display()).unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }
}

impl Drop for OtherUser {
    fn drop(&mut self) {
        let group = Pid::from_raw(-(self.child.id() as i32));
        kill(group, Signal::SIGKILL).unwrap();
        self.child.wait().unwrap();
    }
}

/// A daemon whose settings let [`NAMED`] register one application.
fn daemon(stage: &Stage) -> HostDaemon {
    let mut settings = settings(&stage.socket(), "shenango");
    let mut web = rule("web", 0, AppKind::Latency);
    web.users = vec![NAMED];
    settings.apps[1] = web;
    let folder = stage.socket();
    fs::set_permissions(folder.parent().unwrap(), Permissions::from_mode(0o755)).unwrap();
    HostDaemon::start(settings, Clock::global()).unwrap()
}

fn may_be_others(test: &str) -> bool {
    let tried = Command::new("python3")
        .arg("-c")
        .uid(STRANGER)
        .arg("")
        .status();
    if tried.is_ok_and(|tried| tried.success()) {
        return may(test);
    }
    println!("SKIPPED {test}: it needs root, and a python3 that other users can run");
    false
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").unwrap().count()
}

/// The daemon takes an application in, and goes on with others.
fn it_registers(stage: &Stage) {
    drop(HostClient::register(stage.socket(), &ClientOptions::new("kv", 1)).unwrap());
}

#[test]
fn the_socket_is_closed_to_users_that_the_settings_do_not_name() {
    let _turn = turn();
    if !may_be_others("the_socket_is_closed_to_users_that_the_settings_do_not_name") {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    let mut stranger = OtherUser::new(STRANGER);
    assert_eq!(stranger.tries("asks", 1, &stage).trim(), "PermissionError");
    let mut named = OtherUser::new(NAMED);
    assert!(named.tries("fds", 1, &stage).contains("descriptors"));
    let mut closed = settings(&stage.socket(), "shenango");
    closed.apps[0].groups = vec![NAMED + 7];
    daemon.reload(closed).unwrap();
    assert_eq!(named.tries("asks", 1, &stage).trim(), "PermissionError");
    daemon.stop();
}

/// Only this thread acts as the stranger.
#[test]
fn a_user_for_whom_the_socket_is_closed_is_told_so() {
    let _turn = turn();
    if !may_be_others("a_user_for_whom_the_socket_is_closed_is_told_so") {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    let socket = stage.socket();
    let refused = std::thread::spawn(move || {
        #[expect(unsafe_code, reason = "setfsuid has no wrapper")]
        // SAFETY: an integer.
        unsafe {
            libc::setfsuid(STRANGER)
        };
        HostClient::register(&socket, &ClientOptions::new("kv", 1)).unwrap_err()
    });
    let refused = refused.join().unwrap().to_string();
    assert!(refused.contains("in an application's `users`"), "{refused}");
    assert!(!refused.contains("start one"), "{refused}");
    daemon.stop();
}

/// As where the file system has no access lists.
#[test]
fn nothing_that_a_stranger_sends_is_read_or_shuts_others_out() {
    let _turn = turn();
    if !may_be_others("nothing_that_a_stranger_sends_is_read_or_shuts_others_out") {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    fs::set_permissions(stage.socket(), Permissions::from_mode(0o666)).unwrap();
    it_registers(&stage);
    let before = descriptors();
    let mut stranger = OtherUser::new(STRANGER);
    for what in ["fds", "lingers"] {
        let answers = stranger.tries(what, 5, &stage);
        assert!(answers.contains("may register no application"), "{answers}");
    }
    let answers = stranger.tries("silent", 300, &stage);
    assert!(answers.contains("may register no application"), "{answers}");
    it_registers(&stage);
    drop(stranger);
    until("nothing of the stranger's stays open", || {
        descriptors() <= before
    });
    daemon.stop();
}

#[test]
fn what_a_user_who_may_register_sends_is_owned_and_closed_elsewhere() {
    let _turn = turn();
    if !may_be_others("what_a_user_who_may_register_sends_is_owned_and_closed_elsewhere") {
        return;
    }
    let stage = Stage::new();
    let daemon = daemon(&stage);
    it_registers(&stage);
    let before = descriptors();
    let mut named = OtherUser::new(NAMED);
    let answers = named.tries("fds", 450, &stage);
    assert!(answers.contains("at most 4 descriptors"), "{answers}");
    let answers = named.tries("lingers", 3, &stage);
    assert!(answers.contains("not sealed"), "{answers}");
    it_registers(&stage);
    let answers = named.tries("silent", 40, &stage);
    assert!(answers.contains("are silent"), "{answers}");
    it_registers(&stage);
    drop(named);
    until("nothing of the user's stays open", || {
        descriptors() <= before
    });
    daemon.stop();
}
