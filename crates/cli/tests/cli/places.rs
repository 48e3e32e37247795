//! Where output goes: results have their place before a run, and a standard error that is full ends nothing.

use super::hosting::until;
use super::{headway, words};
use crate::children::TestChild;
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

/// Each command that has a flag for a result, by arguments with which it takes minutes, or needs what is not there. So it is refused for its place only where that is opened before.
const COMMANDS: [&str; 13] = [
    "sim --workload tpcc --policy darc --requests 4G",
    "sweep --workload tpcc --policy darc --requests 4G",
    "capacity --workload tpcc --policy darc --slo overall.slowdown.p99<=9 --requests 4G",
    "plan --workload tpcc --slo overall.slowdown.p99<=9 --requests 4G",
    "bench --workload tpcc --policy darc --duration 600s",
    "load udp://127.0.0.1:9 --workload tpcc --rate 10 --duration 600s",
    "serve --listen udp://127.0.0.1:0 --app echo --no-ctl",
    "reproduce all",
    "calibrate",
    "demo",
    "fit /no/such/trace.csv",
    // These two take no time.
    "doctor",
    "policies",
];

/// The flags that name a result, by their fields' names.
const RESULTS: [&str; 7] = [
    "output",
    "record",
    "hlog",
    "html",
    "trace_out",
    "fit_out",
    "config_out",
];

/// The flags of each command that name a result.
fn flags_for_results() -> BTreeMap<String, Vec<String>> {
    let line = headway_cli::command_line();
    let mut found = BTreeMap::new();
    for command in line.get_subcommands() {
        let ids = command.get_arguments().map(|it| it.get_id().as_str());
        let flags: Vec<String> = ids
            .filter(|id| RESULTS.contains(id))
            .map(|id| format!("--{}", id.replace('_', "-")))
            .collect();
        if !flags.is_empty() {
            found.insert(command.get_name().to_owned(), flags);
        }
    }
    found
}

#[test]
fn a_result_without_a_place_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("no/such/result");
    let place = place.to_str().unwrap();
    let mut flags = flags_for_results();
    for arguments in COMMANDS {
        let arguments = words(arguments);
        let flags = flags.remove(arguments[0]);
        for flag in flags.unwrap_or_else(|| panic!("{arguments:?} has no result")) {
            let mut command = Command::new("timeout");
            command.args(["60", env!("CARGO_BIN_EXE_headway")]);
            command.args(&arguments).args([&flag, place]);
            let refused = command.output().unwrap();
            let said = String::from_utf8(refused.stderr).unwrap();
            let code = refused.status.code();
            assert_eq!(code, Some(2), "{arguments:?} {flag}: {said}");
            assert!(
                said.contains(&flag) && said.contains(place) && refused.stdout.is_empty(),
                "{arguments:?} {flag}: {said}"
            );
        }
    }
    assert!(flags.is_empty(), "{flags:?} are not tried");
}

/// A command whose standard error has no room for a single byte.
fn with_full_stderr(args: &[&str]) -> Command {
    let full = File::options().write(true).open("/dev/full").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(args).stdout(Stdio::piped()).stderr(full);
    command.env("XDG_RUNTIME_DIR", env!("CARGO_TARGET_TMPDIR"));
    command
}

#[test]
fn a_full_standard_error_changes_no_exit_status() {
    for (args, code) in [
        ("sim --policy no-such --workload tpcc", 2),
        ("sim --workload /no/such.toml --policy darc", 2),
        ("ctl status udp://127.0.0.1:9", 2),
        (
            "sim --workload tpcc --policy darc --load 0.5 --requests 10k --slo overall.slowdown.p99<=0.1",
            1,
        ),
    ] {
        let done = with_full_stderr(&words(args)).output().unwrap();
        let expected = headway(&words(args)).status.code();
        assert_eq!(done.status.code(), expected, "{args}");
        assert_eq!(expected, Some(code), "{args}");
    }
}

#[test]
fn a_server_starts_and_ends_with_a_full_standard_error() {
    let mut command = with_full_stderr(&words("serve --listen udp://127.0.0.1:0 --app echo"));
    let mut child = TestChild::start(&mut command);
    let mut line = String::new();
    BufReader::new(child.stdout()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening udp://"), "{line:?}");
}

#[test]
fn a_server_says_that_it_waits_for_the_reader_of_its_record() {
    let folder = tempfile::tempdir().unwrap();
    let fifo = folder.path().join("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let path = fifo.to_str().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    let serve = "serve --listen udp://127.0.0.1:0 --app echo --workers 1 --pin off --no-ctl";
    command.args(words(serve)).args(["--record", path]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = TestChild::start(&mut command);
    let mut said = String::new();
    BufReader::new(child.stderr()).read_line(&mut said).unwrap();
    let waits = format!("--record: {path} is a pipe that nobody reads: this waits for a reader\n");
    assert_eq!(said, waits);
    let reads = std::thread::spawn(move || fs::read_to_string(fifo).unwrap());
    let mut line = String::new();
    BufReader::new(child.stdout()).read_line(&mut line).unwrap();
    assert!(line.starts_with("listening "), "{line}");
    child.signal(libc::SIGTERM);
    assert_eq!(child.wait().code(), Some(0));
    assert_eq!(reads.join().unwrap(), "time,class,service\n");
}

/// The files beside results, which hold them until they are whole.
fn unfinished(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).unwrap();
    let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.starts_with(".headway-")).collect()
}

#[test]
fn what_a_killed_run_leaves_behind_the_next_one_clears() {
    let folder = tempfile::tempdir().unwrap();
    let result = folder.path().join("result.json");
    let sim = |requests| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
        command.args(words(
            "sim --workload tpcc --policy darc --load 0.5 --format json",
        ));
        command.args(["--requests", requests, "-o"]).arg(&result);
        command.stderr(Stdio::null());
        command
    };
    let mut child = TestChild::start(&mut sim("4G"));
    until("it has opened its place", || {
        !unfinished(folder.path()).is_empty()
    });
    child.kill();
    assert_eq!(unfinished(folder.path()).len(), 1);
    assert!(!result.exists(), "half a result is none");
    assert!(sim("10k").status().unwrap().success());
    assert_eq!(unfinished(folder.path()), Vec::<String>::new());
    let whole = fs::read(&result).unwrap();
    assert!(serde_json::from_slice::<serde_json::Value>(&whole).is_ok());
}

/// What mounts `$1` at `$2`, which is the file `place` in the folder `$3`, and runs the rest there.
const MOUNTS: [(&str, &str); 3] = [
    (
        "over a file of its own file system",
        "mount --bind $1 $2 && shift 3 && exec \"$@\"",
    ),
    (
        "in a folder where nobody may write",
        "mount --bind $3 $3 && mount --bind $1 $2 && mount -o remount,ro,bind $3 && shift 3 && exec \"$@\"",
    ),
    (
        "in a folder without room",
        "mount -t tmpfs -o size=4k none $3 && head -c 4096 /dev/zero > $3/full && : > $2 && mount --bind $1 $2 && shift 3 && exec \"$@\"",
    ),
];

/// As containers mount single files.
#[test]
fn a_mounted_file_is_written_in_place() {
    for (kind, script) in MOUNTS {
        let folder = tempfile::tempdir().unwrap();
        let [mounted, beneath] = ["mounted", "beneath"].map(|name| folder.path().join(name));
        fs::create_dir(&beneath).unwrap();
        let place = beneath.join("place");
        fs::write(&place, "beneath").unwrap();
        // Longer than the result: nothing of it may stay.
        fs::write(&mounted, "x".repeat(100_000)).unwrap();
        let inode = fs::metadata(&mounted).unwrap().ino();
        let run = |program: &[&str]| {
            let mut command = Command::new("unshare");
            command.args(["--mount", "--propagation", "private", "sh", "-c", script]);
            command.arg("sh").args([&mounted, &place, &beneath]);
            command.args(program).output()
        };
        let tried = run(&["true"]);
        if !tried.as_ref().is_ok_and(|tried| tried.status.success()) {
            return println!(
                "SKIPPED a_mounted_file_is_written_in_place: it needs root ({tried:?})"
            );
        }
        let mut simulates = vec![env!("CARGO_BIN_EXE_headway")];
        simulates.extend(words(
            "sim --workload tpcc --policy darc --load 0.5 --requests 10k --format json -o",
        ));
        simulates.push(place.to_str().unwrap());
        let done = run(&simulates).unwrap();
        let said = String::from_utf8_lossy(&done.stderr);
        assert!(done.status.success(), "{kind}: {said}");
        let result = fs::read(&mounted).unwrap();
        let result = serde_json::from_slice::<serde_json::Value>(&result);
        assert!(result.is_ok(), "{kind}: {result:?}");
        assert_eq!(fs::metadata(&mounted).unwrap().ino(), inode, "{kind}");
        assert_eq!(fs::read_to_string(&place).unwrap(), "beneath", "{kind}");
        assert_eq!(unfinished(&beneath), Vec::<String>::new(), "{kind}");
    }
}
