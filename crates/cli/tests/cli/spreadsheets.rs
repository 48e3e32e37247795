//! `--format csv`: a record a line, as RFC 4180 quotes it, with unrounded figures, on a terminal too.

use super::terminals::terminal;
use super::{headway, words};
use std::fs::File;
use std::io::Read;
use std::process::Command;

fn printed(args: &[&str]) -> String {
    let output = headway(args);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.stdout.is_empty(), "{args:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// What the command prints on a terminal.
fn printed_on_a_terminal(args: &[&str]) -> String {
    let (ours, theirs) = terminal();
    let mut command = Command::new(env!("CARGO_BIN_EXE_headway"));
    let mut child = command.args(args).stdout(theirs).spawn().unwrap();
    // It holds the terminal's other end.
    drop(command);
    let mut shown = Vec::new();
    // Ends with an error once nobody has the other end.
    let _ = File::from(ours).read_to_end(&mut shown);
    assert!(child.wait().unwrap().success());
    String::from_utf8(shown).unwrap().replace("\r\n", "\n")
}

#[test]
fn prose_in_a_field_breaks_no_record_on_a_terminal() {
    for args in ["policies --format csv", "policies darc --format csv"] {
        let args = words(args);
        assert_eq!(printed_on_a_terminal(&args), printed(&args));
    }
}

#[test]
fn a_fit_is_a_record_for_each_class_with_unrounded_figures() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv").display().to_string();
    let rows: String = (0..40)
        .map(|at| format!("{at}us,\"scan \"\"all\"\", slow\",{}\n", 2 + at % 2))
        .collect();
    std::fs::write(&path, format!("time,class,service\n{rows}")).unwrap();
    let shown = printed(&["fit", &path, "--format", "csv"]);
    let lines: Vec<&str> = shown.lines().collect();
    assert_eq!(lines.len(), 2, "{shown}");
    let head = "class,count,share,service_us,scv,chosen,ks,next,next_ks";
    assert_eq!(lines[0], head);
    let record = "\"scan \"\"all\"\", slow\",40,1,2.5,0.04";
    assert!(lines[1].starts_with(record), "{shown}");
}

/// Each of the columns that this names is a plain number.
fn assert_numbers(shown: &str, columns: &[&str]) {
    let mut lines = shown.lines().map(|line| line.split(','));
    let head: Vec<&str> = lines.next().unwrap().collect();
    let record: Vec<&str> = lines.next().unwrap().collect();
    assert_eq!(head.len(), record.len(), "{shown}");
    for column in columns {
        let at = head.iter().position(|name| name == column).unwrap();
        assert!(record[at].parse::<f64>().is_ok(), "{column}: {shown}");
    }
}

#[test]
fn the_figures_of_a_plan_and_of_capacities_are_numbers() {
    let of = "--policy c-fcfs --workload fixed-1us --slo overall.slowdown.p50<=9 --requests 5k --format csv";
    let shown = printed(&words(&format!("capacity --workers 2 {of}")));
    assert_numbers(&shown, &["workers", "cores", "load", "rps", "of_best"]);
    let shown = printed(&words(&format!("plan --cores 3 --load 0.5 {of}")));
    assert_numbers(
        &shown,
        &["cores", "met", "slo_use", "slo_use_lo", "slo_use_hi"],
    );
}
