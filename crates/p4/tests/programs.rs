//! The programs' text against the entries and against the description that the XDP program is compiled from. A compiler checks them too, where there is one.

use headway_p4::{
    Entry, MAX_GROUPS, MAX_SERVERS, MAX_TURNS, MAX_TYPES, WINDOW_SHIFT, constant_entries,
    entries_of,
};
use headway_policy::ClassHint;
use headway_policy::rack::{Cloning, Demand, Grouping, RackLayout, Shaper, Turns};
use std::collections::BTreeMap;
use std::net::SocketAddrV4;
use std::path::Path;
use std::process::Command;

const PROGRAMS: [&str; 2] = ["rack_v1model.p4", "rack_tna.p4"];

fn text(file: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The numbers behind `#define NAME`.
fn sizes(text: &str) -> BTreeMap<String, usize> {
    text.lines()
        .filter_map(|line| {
            let mut words = line.strip_prefix("#define ")?.split_whitespace();
            Some((words.next()?.to_owned(), words.next()?.parse().ok()?))
        })
        .collect()
}

#[test]
fn sizes_are_those_of_the_entries_and_of_the_xdp_program() {
    let (p4, xdp) = (
        sizes(&text("p4/sizes.p4")),
        sizes(&text("../xdp/bpf/tables.h")),
    );
    let ours = [
        ("MAX_TYPES", MAX_TYPES),
        ("MAX_GROUPS", MAX_GROUPS),
        ("MAX_TURNS", MAX_TURNS),
        ("MAX_SERVERS", MAX_SERVERS),
    ];
    for (name, value) in ours {
        assert_eq!(
            (p4.get(name), xdp.get(name)),
            (Some(&value), Some(&value)),
            "{name}"
        );
    }
    assert_eq!(p4["WINDOW_SHIFT"], WINDOW_SHIFT as usize);
}

/// Every kind of entry once.
fn entries() -> Vec<Entry> {
    let hint = |mean_ns, share| ClassHint::new(mean_ns, share);
    let demand = Demand::declared(&[hint(10_000.0, 0.9), hint(90_000.0, 0.1)]);
    let grouping = Grouping::new(&[0, 1], &demand);
    let layout = RackLayout::new(&[2; 2], 1).updated(&[2, 2], &[None, None]);
    let mut shaper = Shaper::new(2, 4, Turns::Even, Cloning::Off, 1);
    shaper.install(&grouping, &layout, &demand);
    let [own, first, second] =
        [100, 1, 2].map(|host| SocketAddrV4::new([10, 0, 0, host].into(), 7_000));
    let mut entries = constant_entries(own, 2, &[first, second]).unwrap();
    entries.extend(entries_of(&shaper, 2, &[first, second], false, 0).unwrap());
    entries
}

/// The text between the braces or parentheses that open behind `head`.
fn within<'a>(program: &'a str, head: &str, [open, close]: [char; 2]) -> &'a str {
    let at = program.find(head).unwrap_or_else(|| panic!("no `{head}`"));
    let rest = &program[at..];
    let from = rest.find(open).unwrap() + 1;
    let mut depth = 1;
    let to = rest[from..]
        .char_indices()
        .find(|&(_, c)| {
            depth += i32::from(c == open) - i32::from(c == close);
            depth == 0
        })
        .unwrap()
        .0;
    &rest[from..from + to]
}

/// Table, keys, action and parameters of every entry are declared, as many as it has.
#[test]
fn both_programs_declare_what_entries_name() {
    for file in PROGRAMS {
        let program = text(&format!("p4/{file}"));
        for Entry {
            table,
            keys,
            action,
            params,
        } in entries()
        {
            let body = within(&program, &format!("table {table} {{"), ['{', '}']);
            let declared = within(body, "key", ['{', '}']).matches(": exact").count();
            assert!(keys.is_empty() || keys.len() == declared, "{file}: {table}");
            let actions = within(body, "actions", ['{', '}']);
            assert!(
                actions.split(';').any(|a| a.trim() == action),
                "{file}: {table}"
            );
            let list = within(&program, &format!("action {action}("), ['(', ')']);
            let declared = list.split(',').filter(|p| !p.trim().is_empty()).count();
            assert_eq!(params.len(), declared, "{file}: {action}");
        }
    }
}

/// Where a compiler is installed it has the last word.
#[test]
fn programs_compile_where_there_is_a_compiler() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("p4");
    let outcome = Command::new("p4test")
        .args(["--std", "p4-16"])
        .arg(folder.join(PROGRAMS[0]))
        .output();
    match outcome {
        Err(error) => eprintln!(
            "SKIPPED compiling {}: p4test: {error}; install p4c",
            PROGRAMS[0]
        ),
        Ok(outcome) => assert!(
            outcome.status.success(),
            "{}",
            String::from_utf8_lossy(&outcome.stderr)
        ),
    }
}
