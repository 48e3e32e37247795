//! `headway` accepts every command in the documents.

use crate::document::Document;
use crate::examples::examples;
use crate::{assert_tidy, shell};
use clap::error::ErrorKind;
use headway_cli::command_line;
use std::collections::BTreeMap;
use std::process::Command;

/// Dated documents, which keep their commands.
const HISTORY: [&str; 2] = ["docs/lab/", "CHANGELOG.md"];

/// Commands in virtual time. The tests can run them to check arguments that the parser does not.
const SIMULATED: [&str; 3] = ["sim", "sweep", "capacity"];

fn documents() -> Vec<Document> {
    let mut documents = Document::all();
    documents.retain(|document| !HISTORY.iter().any(|path| document.path.starts_with(path)));
    documents
}

/// The arguments of each command in a fenced block, with its place, except commands whose shown output is an error.
fn in_blocks() -> Vec<(String, Vec<String>)> {
    let mut found = Vec::new();
    for document in documents() {
        for example in examples(&document) {
            let first = example.output.first();
            if first.is_some_and(|line| line.starts_with("error: ")) {
                continue;
            }
            let place = format!("{}:{}", document.path, example.line);
            let commands = example.commands.iter();
            let arguments = commands.filter_map(shell::Simple::headway);
            found.extend(arguments.map(|arguments| (place.clone(), arguments.to_vec())));
        }
    }
    found
}

#[test]
fn every_command_in_a_block_parses() {
    let mut faults = Vec::new();
    for (place, arguments) in in_blocks() {
        if let Err(why) = parse(&arguments) {
            faults.push(format!("{place}: `headway {}`: {why}", arguments.join(" ")));
        }
    }
    assert_tidy(&faults);
}

/// A command checks policies, workloads and objectives only when it runs, so the test runs it with few requests.
#[test]
fn every_simulated_command_in_a_block_can_run() {
    let rehearsals = in_blocks().into_iter();
    let rehearsals = rehearsals.filter_map(|(place, words)| Some((rehearsal(&words)?, place)));
    let mut faults = Vec::new();
    // Without the replaced arguments, many commands are equal: each runs once.
    for (arguments, place) in rehearsals.collect::<BTreeMap<_, _>>() {
        let mut headway = Command::new(env!("CARGO_BIN_EXE_headway"));
        let output = headway.args(&arguments).output().expect("headway runs");
        if !matches!(output.status.code(), Some(0 | 1)) {
            let why = String::from_utf8_lossy(&output.stderr);
            faults.push(format!("{place}: `headway {}`: {why}", arguments.join(" ")));
        }
    }
    assert_tidy(&faults);
}

/// Code in sentences may omit required arguments, but every command and every flag exists.
#[test]
fn every_command_in_a_sentence_exists() {
    let mut faults = Vec::new();
    for document in &documents() {
        for code in &document.codes {
            let commands = shell::commands(&code.item);
            for arguments in commands.iter().filter_map(shell::Simple::headway) {
                if let Err(why) = mention(arguments) {
                    faults.push(document.fault(code.line, format!("`{}`: {why}", code.item)));
                }
            }
        }
    }
    assert_tidy(&faults);
}

/// Checks that the command line accepts these arguments.
fn parse(arguments: &[String]) -> Result<(), String> {
    let words = std::iter::once("headway").chain(arguments.iter().map(String::as_str));
    match command_line().try_get_matches_from(words) {
        Ok(_) => Ok(()),
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => Ok(()),
            _ => {
                let text = error.to_string();
                let why = text.split("\n\nUsage:").next();
                Err(why.unwrap_or_default().trim_end().to_string())
            }
        },
    }
}

/// Checks that the command and its flags exist.
fn mention(arguments: &[String]) -> Result<(), String> {
    let Some((name, arguments)) = arguments.split_first() else {
        return Ok(());
    };
    if name.starts_with('-') || name == "…" {
        return Ok(());
    }
    let line = command_line();
    let command = line.find_subcommand(name);
    let command = command.ok_or_else(|| format!("there is no command `{name}`"))?;
    let mut flags = vec!["-".to_string(), "--help".to_string(), "-h".to_string()];
    for argument in command.get_arguments() {
        flags.extend(argument.get_long().map(|long| format!("--{long}")));
        flags.extend(argument.get_short().map(|short| format!("-{short}")));
    }
    for argument in arguments
        .iter()
        .filter(|argument| argument.starts_with('-'))
    {
        let flag = argument.split('=').next().unwrap_or_default();
        if !flags.iter().any(|known| known == flag) {
            return Err(format!("`headway {name}` has no `{flag}`"));
        }
    }
    Ok(())
}

/// The arguments of a run of a few requests, unless they name files.
fn rehearsal(arguments: &[String]) -> Option<Vec<String>> {
    const LEFT_OUT: [&str; 5] = [
        "--requests",
        "--duration",
        "--seed",
        "--load",
        "--replications",
    ];
    let simulated = SIMULATED.contains(&arguments.first()?.as_str());
    if !simulated
        || arguments.iter().any(|word: &String| {
            word == "-o"
                || ["toml", "csv", "json", "html"]
                    .iter()
                    .any(|end| word.ends_with(&format!(".{end}")))
        })
        || parse(arguments).is_err()
    {
        return None;
    }
    let mut kept = Vec::new();
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        if LEFT_OUT.contains(&word.as_str()) {
            words.next();
        } else {
            kept.push(word.clone());
        }
    }
    kept.extend(["--requests", "200"].map(str::to_string));
    Some(kept)
}

#[test]
fn what_is_made_up_is_told() {
    let words = |line: &str| line.split(' ').map(str::to_string).collect::<Vec<_>>();
    for good in ["sim --policy c-fcfs", "--help", "man --dir x"] {
        assert_eq!(parse(&words(good)), Ok(()), "{good}");
    }
    for bad in [
        "smi",
        "sim --polcy c-fcfs",
        "sim --load",
        "sim --load 1 --rate 1",
    ] {
        assert!(parse(&words(bad)).is_err(), "{bad}");
    }
    for good in ["plan --trace", "sweep --loads 0.1..0.9:0.1 …", "serve -c"] {
        assert_eq!(mention(&words(good)), Ok(()), "{good}");
    }
    for bad in ["paln", "sim --polcy"] {
        assert!(mention(&words(bad)).is_err(), "{bad}");
    }
    let run = rehearsal(&words("sim --load 0.5 --policy c-fcfs --seed 4"));
    assert_eq!(run, Some(words("sim --policy c-fcfs --requests 200")));
    assert_eq!(rehearsal(&words("sim --costs costs.json")), None);
}
