//! The command and a program's builder refuse the same settings, in the same words: over a grid of settings files, journals and datapaths.

use super::args::Args;
use super::watch::JOURNAL_ENTRIES;
use crate::commands::apps::BuiltInApp;
use clap::Parser;
use headway::config::FromConfig;
use headway_net::datapath::{Datapath, DatapathEnds};
use headway_policy::server::systems::NAMES;
use headway_runtime::{AdmittedServer, Builder, Call};
use std::collections::BTreeSet;
use std::io;
use std::path::Path;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    args: Args,
}

/// What stands in no file that both read: the command chooses the journal by other flags, and a program hands its datapath to the builder.
#[derive(Clone, Copy, Default)]
struct Beside {
    /// Entries of each worker's journal.
    journal: usize,
    /// A device's packets by `AF_XDP` in place of the kernel's UDP.
    by_device: bool,
}

/// The line `headway serve --check -c FILE`.
fn line(file: &Path, beside: Beside) -> Args {
    let mut line = vec!["serve", "-c", file.to_str().unwrap()];
    if beside.by_device {
        line.extend(["--listen", "xdp://lo:7000"]);
    }
    Line::try_parse_from(line).unwrap().args
}

/// What the command says against its file; an error names its place.
fn refused_by_command(line: &Args, beside: Beside) -> Option<String> {
    let settings = line.clone().settings();
    let admitted = settings.and_then(|mut settings| {
        settings.journal = beside.journal;
        settings.admit()
    });
    admitted.err().map(|error| error.to_string())
}

/// What a program that is built from the file says against it.
fn refused_by_builder(file: &Path, beside: Beside) -> Option<String> {
    admitted_by_builder(file, beside).err()
}

fn admitted_by_builder(file: &Path, beside: Beside) -> Result<AdmittedServer, String> {
    let builder = Builder::from_config_promising(file, BuiltInApp::Spin.promises());
    let builder = builder.map_err(|error| error.to_string())?;
    let builder = builder.journal(beside.journal);
    let server = builder.handler(|call: &mut Call<'_>| call.reply(b"pong"));
    let checked = if beside.by_device {
        server.datapath(Unopened).check()
    } else {
        server.check()
    };
    checked.map_err(|error| error.to_string())
}

/// A datapath of a program's own. A check opens none.
struct Unopened;

impl Datapath for Unopened {
    fn split(self: Box<Self>, _: usize, _: usize) -> io::Result<DatapathEnds> {
        Err(io::Error::other("it is never opened"))
    }
}

/// Keys with the values that they take in turn: those of the first dimension of the grid change last. Without a value the key is left out.
type Dimension<'a> = (&'a str, &'a [&'a str]);

const LEFT_OUT: &str = "";

/// All files of a grid.
fn files(grid: &[Dimension<'_>]) -> Vec<String> {
    let mut files = vec![String::new()];
    for (key, values) in grid {
        let with = |text: &String, value: &&str| match *value {
            LEFT_OUT => text.clone(),
            value => format!("{text}{key} = {value}\n"),
        };
        files = files
            .iter()
            .flat_map(|text| values.iter().map(move |value| with(text, value)))
            .collect();
    }
    files
}

/// Asks both about each file. Returns how many of them both accept, and what the builder says against the others.
fn ask_both(files: &[String], beside: Beside) -> (usize, BTreeSet<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("server.toml");
    // Parsed once, for all files.
    let line = line(&path, beside);
    let (mut accepted, mut sentences) = (0, BTreeSet::new());
    for text in files {
        // A file that is cut off and written anew waits for the disk (ext4), a new one does not.
        let _ = std::fs::remove_file(&path);
        std::fs::write(&path, text).unwrap();
        match (
            refused_by_command(&line, beside),
            refused_by_builder(&path, beside),
        ) {
            (None, None) => accepted += 1,
            (Some(command), Some(builder)) => {
                // The builder does not know the line of what it refuses; where the file itself is at fault, both do.
                let sentence = builder.strip_prefix("policy: ").unwrap_or(&builder);
                assert!(
                    command.ends_with(sentence),
                    "{text}command: {command}\nbuilder: {builder}"
                );
                sentences.insert(sentence.to_owned());
            }
            (command, builder) => panic!("{text}command: {command:?}\nbuilder: {builder:?}"),
        }
    }
    (accepted, sentences)
}

fn quoted(values: &[&str]) -> Vec<String> {
    let quote = |value: &&str| match *value {
        LEFT_OUT => String::new(),
        value => format!("\"{value}\""),
    };
    values.iter().map(quote).collect()
}

/// The policies of servers, and forms of them that differ in what they heed.
fn policies() -> Vec<String> {
    let forms = [
        "ps",
        "darc,profile=known",
        "concord,dispatcher=dedicated",
        "synergy,parts=none",
        "concord,dispatchers=2",
    ];
    for form in forms {
        // Against a spec that is none, both would say the same whatever stands beside it.
        let spec = headway_study::any_policy(form);
        assert!(spec.is_ok(), "{:?}", spec.err());
    }
    let all: Vec<&str> = NAMES.iter().copied().chain(forms).collect();
    quoted(&all)
}

/// The sentences that a grid must come to, so that it cannot agree about nothing.
fn assert_said(sentences: &BTreeSet<String>, parts: &[&str]) {
    for part in parts {
        let said = sentences.iter().any(|sentence| sentence.contains(part));
        assert!(said, "nobody said '{part}': {sentences:#?}");
    }
}

const MECHANISMS: Dimension<'_> = ("preempt", &[LEFT_OUT, "\"flag\"", "\"tsc\"", "\"signal\""]);
const PLACES: Dimension<'_> = ("resume", &[LEFT_OUT, "\"own-worker\"", "\"anywhere\""]);
const LAYOUTS: Dimension<'_> = (
    "layout",
    &[LEFT_OUT, "\"auto\"", "\"dedicated\"", "\"inline\""],
);

#[test]
fn the_command_and_the_builder_refuse_the_same_policies() {
    let policies = policies();
    let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
    let grid = [
        ("workload", &["\"high-bimodal\""][..]),
        ("policy", &policies),
        ("workers", &["2"]),
        LAYOUTS,
        MECHANISMS,
        PLACES,
    ];
    let (accepted, sentences) = ask_both(&files(&grid), Beside::default());
    assert!(accepted > 100, "{accepted} accepted");
    assert_said(
        &sentences,
        &[
            "leave the layout out",
            "leave the mechanism out",
            "let them resume anywhere",
            "signals come from a dispatcher with a thread of its own",
            "interrupt by flags, or choose the inline layout",
            "profile=known",
            "headway sim",
        ],
    );
}

#[test]
fn the_command_and_the_builder_refuse_the_same_combinations() {
    let grid = [
        ("workload", &["\"high-bimodal\""][..]),
        (
            "policy",
            &["\"c-fcfs\"", "\"concord\"", "\"synergy\"", "\"tardis\""],
        ),
        ("workers", &["2"]),
        LAYOUTS,
        MECHANISMS,
        PLACES,
        ("feedback", &[LEFT_OUT, "true"]),
        ("look-every", &[LEFT_OUT, "\"10us\""]),
        ("queue-limit", &[LEFT_OUT, "64"]),
        ("steer", &[LEFT_OUT, "\"random\""]),
    ];
    let (accepted, sentences) = ask_both(&files(&grid), Beside::default());
    assert!(accepted > 100, "{accepted} accepted");
    assert_said(
        &sentences,
        &[
            "leave the steering out",
            "leave the queue limit out",
            "leave the feedback out",
            "leave the interval out",
        ],
    );
}

#[test]
fn the_command_and_the_builder_refuse_the_same_numbers() {
    let grid = [
        ("workload", &["\"high-bimodal\""][..]),
        (
            "policy",
            &[
                "\"c-fcfs\"",
                "\"concord,dispatchers=2\"",
                "\"synergy\"",
                "\"tardis\"",
            ],
        ),
        ("workers", &["0", "1", "2", "256", "257"]),
        (
            "queue-limit",
            &[LEFT_OUT, "0", "1", "1000000000", "9223372036854775807"],
        ),
        ("look-every", &[LEFT_OUT, "\"999ns\"", "\"1us\"", "\"1h\""]),
        ("pin", &[LEFT_OUT, "\"off\"", "\"0,0\"", "\"x\""]),
        ("most-lent-threads", &[LEFT_OUT, "0", "7"]),
    ];
    let (accepted, sentences) = ask_both(&files(&grid), Beside::default());
    assert!(accepted > 20, "{accepted} accepted");
    assert_said(
        &sentences,
        &[
            "1 to 256 workers",
            "dispatchers=2",
            "queue_limit is 0",
            "queues of 1000000000",
            "at least 1us and at most 1s",
            "leave the most of such threads out",
        ],
    );
}

#[test]
fn the_command_and_the_builder_refuse_the_same_journals() {
    let grid = [
        ("workload", &["\"high-bimodal\""][..]),
        (
            "policy",
            &["\"c-fcfs\"", "\"concord\"", "\"synergy\"", "\"tardis\""],
        ),
        ("workers", &["1", "2", "256", "257"]),
        LAYOUTS,
    ];
    let files = files(&grid);
    let ask = |journal| {
        let beside = Beside {
            journal,
            ..Beside::default()
        };
        ask_both(&files, beside)
    };
    let (without, _) = ask(0);
    assert!(without > 20, "{without} accepted");
    // What --stats and --record ask for is never too much.
    for journal in [1, JOURNAL_ENTRIES, 1 << 22] {
        assert_eq!(ask(journal).0, without, "a journal of {journal}");
    }
    for journal in [(1 << 22) + 1, usize::MAX] {
        let (accepted, sentences) = ask(journal);
        assert_eq!(accepted, 0, "a journal of {journal}");
        assert_said(&sentences, &[&format!("journal is {journal}")]);
    }
}

#[test]
fn a_journal_is_kept_where_somebody_reads_it() {
    let kept = |flags: &[&str]| {
        let line = [&["serve"], flags].concat();
        let settings = Line::try_parse_from(line).unwrap().args.settings();
        settings.unwrap().journal
    };
    assert_eq!(kept(&[]), 0);
    assert_eq!(kept(&["--stats", "1s"]), JOURNAL_ENTRIES);
    assert_eq!(kept(&["--record", "trace.csv"]), JOURNAL_ENTRIES);
}

#[test]
fn the_command_and_the_builder_refuse_the_same_over_a_device() {
    let policies = policies();
    let policies: Vec<&str> = policies.iter().map(String::as_str).collect();
    let grid = [
        ("workload", &["\"high-bimodal\""][..]),
        ("policy", &policies),
        ("workers", &["2"]),
        LAYOUTS,
        PLACES,
        ("queue-limit", &[LEFT_OUT, "0", "64"]),
        ("look-every", &[LEFT_OUT, "\"10us\""]),
    ];
    let by_device = Beside {
        by_device: true,
        ..Beside::default()
    };
    let files = files(&grid);
    let (accepted, sentences) = ask_both(&files, by_device);
    assert!(accepted > 100, "{accepted} accepted");
    assert_said(
        &sentences,
        &[
            "leave the layout out",
            "leave the queue limit out",
            "leave the interval out",
            "queue_limit is 0",
        ],
    );
    // The datapath changes no refusal.
    assert_eq!(accepted, ask_both(&files, Beside::default()).0);
}
