//! Ctrl-C: commands that measure say what they have so far, marked as cut off.

use super::children::TestChild;
use super::racked::TINY;
use super::serving::Serving;
use super::terminals::terminal;
use super::words;
use headway_bench::calibrate::steps;
use serde_json::Value;
use std::fs;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);
/// How long a command may wait for each second of a processor: others may want it too.
const PATIENCE_PER_SECOND: u32 = 30;

/// The processor time of a process so far; `None` once it has ended.
fn cpu_time(pid: i32) -> Option<Duration> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    // Fields 14 and 15 of the line, in hundredths of a second (proc(5)).
    let ticks: u64 = fields[11].parse::<u64>().ok()? + fields[12].parse::<u64>().ok()?;
    Some(Duration::from_millis(10 * ticks))
}

/// Whether a process has a handler of its own for Ctrl-C.
fn hears_ctrl_c(pid: i32) -> bool {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (libc::SIGINT - 1)) != 0)
}

/// The report of a command that Ctrl-C ends once it has worked for `after`, and its exit status; `None` where it ended before, or had nothing to
/// report.
fn interrupted(args: &str, after: Duration) -> Option<(Value, Option<i32>)> {
    let (text, status) = stopped(args, after)?;
    Some((serde_json::from_str(&text).ok()?, status))
}

/// The text that such a command writes.
fn stopped(args: &str, after: Duration) -> Option<(String, Option<i32>)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(words(args)).args(["--format", "json", "-o"]);
    command
        .arg(&path)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let mut child = TestChild::start(&mut command);
    let deadline = Instant::now() + PATIENCE + PATIENCE_PER_SECOND * after;
    while !hears_ctrl_c(child.id()) || cpu_time(child.id())? < after {
        if child.ended().is_some() {
            return None;
        }
        assert!(Instant::now() < deadline, "{args}: it does not begin");
        std::thread::sleep(Duration::from_millis(5));
    }
    child.signal(libc::SIGINT);
    let status = child.wait();
    let text = fs::read_to_string(&path).unwrap_or_default();
    Some((text, status.code()))
}

/// Interrupts a command later and later until it has something to say, and is not done yet.
fn cut_off(args: &str, says_something: impl Fn(&Value) -> bool) -> Value {
    cut_off_from(Duration::from_millis(100), args, says_something)
}

/// The same for a command that has nothing to say for so long.
fn cut_off_from(mut after: Duration, args: &str, says_something: impl Fn(&Value) -> bool) -> Value {
    let deadline = Instant::now() + 4 * PATIENCE;
    while Instant::now() < deadline {
        if let Some((report, status)) = interrupted(args, after)
            && says_something(&report)
        {
            assert_eq!(status, Some(130), "{report}");
            return report;
        }
        after = after * 3 / 2;
    }
    panic!("{args}: it never said what it had");
}

#[test]
fn a_simulation_gives_the_requests_until_then() {
    let report = cut_off("sim --requests 60M", |report| {
        report["cut_off"] == true && report["classes"][0]["count"].as_u64() > Some(0)
    });
    assert!(report["requests"].as_u64() < Some(60_000_000), "{report}");
    assert!(report["overall"]["slowdown"]["p99"].as_f64() >= Some(1.0));
}

#[test]
fn a_sweep_gives_the_points_that_were_done() {
    let args = "sweep --policy c-fcfs --loads 0.1..0.9:0.01 --requests 1M --threads 1";
    let report = cut_off(args, |report| report["cut_off"] == true);
    let runs = report["runs"].as_array().unwrap();
    assert!((1..81).contains(&runs.len()), "{}", runs.len());
    assert_eq!(report["points"].as_array().unwrap().len(), runs.len());
    assert!(runs.iter().all(|run| run["requests"] == 1_000_000));
}

#[test]
fn a_capacity_gives_the_loads_that_were_carried() {
    let args = "capacity --policy c-fcfs --tolerance 0.0001 --requests 3M --workers 2";
    let report = cut_off(args, |report| {
        report["cut_off"] == true && report["results"][0]["load"].as_f64() > Some(0.0)
    });
    assert!(report["results"][0]["run"]["requests"] == 3_000_000);
}

#[test]
fn live_rounds_that_were_complete_are_reported() {
    let args = "bench --policy c-fcfs --workers 1 --layout inline --idle park --rate 2k --duration 50ms --rounds 300";
    let report = cut_off(args, |report| report["cut_off"] == true);
    let rounds = report["runs"].as_array().unwrap().len();
    assert!((1..300).contains(&rounds), "{rounds}");
}

#[test]
fn what_has_nothing_to_report_yet_was_interrupted_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    for args in [
        "bench --policy c-fcfs --workers 1 --layout inline --idle park --rate 2k --duration 600s",
        "sweep --policy c-fcfs --loads 0.5 --requests 2000M",
        &format!("demo --seconds 600 --html {}", page.display()),
    ] {
        let (text, status) = stopped(args, Duration::ZERO).expect("it goes on");
        assert_eq!((text.as_str(), status), ("", Some(130)), "{args}");
    }
}

#[test]
fn a_host_is_simulated_until_then() {
    let args = "sim --policy shenango --workers 4 --load 0.5 --requests 6M";
    // Enough for the rates below: those of a few hundred are a fifth off.
    let report = cut_off(args, |report| {
        report["cut_off"] == true && report["classes"][0]["count"].as_u64() > Some(10_000)
    });
    assert!(report["requests"].as_u64() < Some(6_000_000), "{report}");
    // Rates are those of the time until then: at half the load, half of the cores' time is useful, and nothing is left over.
    let server = &report["apps"][0];
    let useful = server["useful_cores"].as_f64().unwrap();
    assert!((1.8..2.2).contains(&useful), "{server}");
    assert_eq!(server["unfinished"], 0);
    assert_eq!(server["overloaded"], false);
}

#[test]
fn a_plan_gives_the_last_round_that_was_complete() {
    let args = "plan --workload high-bimodal --cores 5 --requests 200k --replications 20";
    let report = cut_off(args, |report| report["cut_off"] == true);
    assert_eq!(report["verdict"], "undecided", "{report}");
    let (rounds, ranking) = (&report["rounds"], &report["ranking"]);
    let last = rounds.as_array().unwrap().last().unwrap();
    assert!(last["requests"].as_u64() < Some(200_000), "{rounds}");
    let replications = ranking[0]["replications"].as_u64();
    assert_eq!(last["replications"].as_u64(), replications, "{rounds}");
    assert_eq!(report["cores"].as_array().unwrap().len(), 0);
}

/// Whether a bar that a terminal shows has gone beyond so many steps: the last `N/M` is its position.
fn is_beyond(shown: &str, steps: usize) -> bool {
    let last = shown.split_whitespace().rev().find_map(|word| {
        let (position, all) = word.split_once('/')?;
        all.parse::<usize>().ok()?;
        position.parse::<usize>().ok()
    });
    last.is_some_and(|position| position > steps)
}

#[test]
fn a_calibration_gives_the_layouts_that_were_complete() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("report.json");
    let (ours, theirs) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(words("calibrate --accept-noise --format json -o"));
    command.arg(&path).stdout(Stdio::null()).stderr(theirs);
    let mut child = TestChild::start(&mut command);
    // It holds the terminal's other end.
    drop(command);
    let (mut ours, mut shown, mut goes_on) = (fs::File::from(ours), Vec::new(), true);
    let mut buffer = [0; 1024];
    // Until nobody has the other end.
    while let Ok(bytes @ 1..) = ours.read(&mut buffer) {
        shown.extend_from_slice(&buffer[..bytes]);
        if goes_on && is_beyond(&String::from_utf8_lossy(&shown), steps(1)) {
            child.signal(libc::SIGINT);
            goes_on = false;
        }
    }
    let shown = String::from_utf8_lossy(&shown);
    assert!(!goes_on, "{shown}");
    assert_eq!(child.wait().code(), Some(130), "{shown}");
    let report = fs::read_to_string(&path).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(report["cut_off"], true, "{report}");
    let layouts = report["layouts"].as_object().unwrap();
    assert!(!layouts.is_empty(), "{report}");
}

#[test]
fn a_load_gives_the_answers_until_then() {
    let server = Serving::start(&["--app", "echo"]);
    let args = format!("load {} --rate 10k --requests 30k", server.url);
    let report = cut_off(&args, |report| {
        report["cut_off"] == true && report["classes"][0]["count"].as_u64() > Some(0)
    });
    let delivery = &report["delivery"];
    assert!(delivery["sent"].as_u64() < Some(30_000), "{report}");
    assert_eq!(delivery["sent"], delivery["answered"], "{report}");
}

#[test]
fn a_load_that_is_terminated_gives_the_answers_until_then() {
    let server = Serving::start(&["--app", "echo"]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("record.csv");
    let args = format!(
        "load {} --rate 1k --duration 600s --format json --record",
        server.url
    );
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    command.args(words(&args)).arg(&path);
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = TestChild::start(&mut command);
    server.await_count("answered", 1);
    child.signal(libc::SIGTERM);
    let report: Value = serde_json::from_reader(child.stdout()).unwrap();
    assert_eq!(child.wait().code(), Some(143), "{report}");
    assert_eq!(report["cut_off"], true, "{report}");
    assert!(fs::read_to_string(&path).unwrap().lines().count() > 1);
}

#[test]
fn a_demonstration_gives_the_rounds_that_were_complete() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let args = format!(
        "demo --policy c-fcfs --policy synergy --load 0.2 --rounds 20 --seconds 20 --html {}",
        page.display()
    );
    let report = cut_off_from(Duration::from_secs(3), &args, |report| {
        report["cut_off"] == true
    });
    let rounds = report["rounds"].as_u64().unwrap();
    assert!((1..20).contains(&rounds), "{report}");
    let untouched = report["untouched"].as_array().unwrap();
    assert_eq!(untouched.len(), 2, "{report}");
    assert!(page.exists());
}

#[test]
fn a_reproduction_gives_the_experiments_that_were_complete() {
    let report = cut_off("reproduce concord --fast --threads 1", |report| {
        report["cut_off"] == true && !report["results"].as_array().unwrap().is_empty()
    });
    assert!(report["results"][0]["claims"].is_array(), "{report}");
}

#[test]
fn a_measured_reproduction_gives_the_rounds_that_were_complete() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("tiny.toml");
    fs::write(&file, TINY.replace("rounds = 2", "rounds = 30")).unwrap();
    let report = cut_off(&format!("reproduce {}", file.display()), |report| {
        report["cut_off"] == true && report["results"][0]["rounds"].as_u64() > Some(1)
    });
    let result = &report["results"][0];
    let rounds = result["rounds"].as_u64().unwrap();
    assert!(rounds < 30 && result["cut_off"] == true, "{report}");
    let runs = result["runs"].as_array().unwrap();
    assert_eq!(runs.len() as u64, 2 * rounds, "two systems each: {report}");
    assert!(
        result["claims"][0]["rounds"].as_u64() <= Some(rounds),
        "{report}"
    );
}
