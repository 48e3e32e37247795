//! Every output in a document equals the command's output.
//!
//! A block marked `console` has commands after `$ `, each followed by its whole output; `…` stands for any number of lines, and within a line for any text.
//! In virtual time, the output is the same on every machine, to the digit. Measured output is marked `console live` and not compared. A TOML block whose
//! first line is `# NAME.toml` is the file of that name for the document's commands.

use crate::assert_tidy;
use crate::document::Document;
use crate::examples::{Example, examples};
use std::path::Path;
use std::process::Command;

const ELISION: &str = "…";

/// Commands whose output is a function of their arguments.
const REPEATABLE: [&str; 6] = ["sim", "sweep", "capacity", "plan", "fit", "reproduce"];

#[test]
fn every_output_is_what_the_command_prints() {
    let mut faults = Vec::new();
    for document in Document::all() {
        if document.path.starts_with("docs/lab/") {
            continue;
        }
        let folder = tempfile::tempdir().expect("a folder for the document's files");
        write_files(&document, folder.path());
        for example in examples(&document) {
            if let Err(what) = compare(&example, folder.path()) {
                faults.push(document.fault(example.line, what));
            }
        }
    }
    assert_tidy(&faults);
}

/// Runs an example and compares its output, unless the example shows none or is live.
fn compare(example: &Example, folder: &Path) -> Result<(), String> {
    let shows_headway = example
        .commands
        .iter()
        .any(|command| command.headway().is_some());
    if example.output.is_empty() || !shows_headway {
        return Ok(());
    }
    if example.language != "console" {
        return Err("a block with a command and its output is marked `console`, or `console live` where it is not the same on every machine".to_string());
    }
    if example.live {
        return Ok(());
    }
    let [command] = &example.commands[..] else {
        return Err(
            "show one command without pipes, so that its output can be compared".to_string(),
        );
    };
    let arguments = command.headway().unwrap_or_default();
    let is_repeatable = arguments
        .first()
        .is_some_and(|name| REPEATABLE.contains(&name.as_str()))
        || arguments.iter().any(|argument| argument == "--check");
    if !is_repeatable {
        return Err(
            "what this command prints differs from run to run; mark the block `console live`"
                .to_string(),
        );
    }
    let output = Command::new(env!("CARGO_BIN_EXE_headway"))
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("headway runs");
    let stdout = String::from_utf8_lossy(&output.stdout);
    let mut printed = String::from_utf8_lossy(&output.stderr).into_owned();
    match command.output.as_deref() {
        None => printed.insert_str(0, &stdout),
        Some("/dev/null") => {}
        Some(_) => return Err("redirect to nothing but /dev/null".to_string()),
    }
    let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    let shown: Vec<&str> = example.output.iter().map(String::as_str).collect();
    if matches(&shown, &printed) {
        Ok(())
    } else {
        Err(format!(
            "the command prints something else; replace what is shown by\n{}",
            printed.join("\n")
        ))
    }
}

/// Whether the lines match the shown ones, in which `…` stands for any number of lines.
fn matches(shown: &[&str], printed: &[&str]) -> bool {
    match shown.split_first() {
        None => printed.is_empty(),
        Some((&ELISION, rest)) => (0..=printed.len()).any(|skip| matches(rest, &printed[skip..])),
        Some((line, rest)) => {
            printed
                .first()
                .is_some_and(|printed| line_matches(line, printed))
                && matches(rest, &printed[1..])
        }
    }
}

/// Whether the line matches the shown one, in which `…` stands for any text.
fn line_matches(shown: &str, printed: &str) -> bool {
    let Some((begin, rest)) = shown.split_once(ELISION) else {
        return shown == printed;
    };
    let Some(printed) = printed.strip_prefix(begin) else {
        return false;
    };
    let starts = printed
        .char_indices()
        .map(|(at, _)| at)
        .chain([printed.len()]);
    starts
        .into_iter()
        .any(|at| line_matches(rest, &printed[at..]))
}

/// Writes the files that the document shows.
fn write_files(document: &Document, folder: &Path) {
    for block in &document.blocks {
        let text = &block.item.text;
        let name = text.lines().next().and_then(|line| line.strip_prefix("# "));
        if let Some(name) =
            name.filter(|name: &&str| name.ends_with(".toml") && !name.contains(['/', ' ']))
        {
            std::fs::write(folder.join(name), text).expect("the folder can be written to");
        }
    }
}

#[test]
fn an_elision_stands_for_lines_or_for_text() {
    assert!(line_matches(
        "there are: a, …; did … c?",
        "there are: a, b; did you mean c?"
    ));
    assert!(!line_matches(
        "there are: a, …; did …",
        "there are: a, b; do"
    ));
    let printed = ["a", "b", "c"];
    for good in [
        &["a", "b", "c"][..],
        &["a", "…"],
        &["…", "c"],
        &["a", "…", "c"],
        &["a", "…", "b", "c"],
    ] {
        assert!(matches(good, &printed), "{good:?}");
    }
    for bad in [&["a"][..], &["…", "b"], &["a", "…", "d"]] {
        assert!(!matches(bad, &printed), "{bad:?}");
    }
}
