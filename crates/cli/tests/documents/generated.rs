//! The text between `<!-- headway ARGUMENTS -->` and `<!-- end -->` in a document is the output of the command.

use crate::assert_tidy;
use crate::tree;
use std::process::Command;

const BEGIN: &str = "<!-- headway ";
const CLOSE: &str = " -->";
const END: &str = "<!-- end -->";

#[test]
fn generated_parts_are_what_their_command_prints() {
    let mut found = 0;
    let mut faults = Vec::new();
    for path in tree::files(&["md"]) {
        for (line, part) in parts(&tree::read(&path)) {
            found += 1;
            let printed = printed(&part.arguments);
            if part.text != printed {
                faults.push(format!(
                    "{path}:{line}: put between the markers what `headway {}` prints:\n{printed}",
                    part.arguments
                ));
            }
        }
    }
    assert!(found > 0, "no document has a generated part");
    assert_tidy(&faults);
}

struct Part {
    arguments: String,
    text: String,
}

/// The generated parts, with the line of their first marker.
fn parts(document: &str) -> Vec<(usize, Part)> {
    let mut parts = Vec::new();
    let mut lines = document.lines().zip(1..);
    while let Some((marker, line)) = lines.next() {
        let arguments = marker
            .strip_prefix(BEGIN)
            .and_then(|rest| rest.strip_suffix(CLOSE));
        if let Some(arguments) = arguments {
            let own = lines.by_ref().take_while(|(text, _)| *text != END);
            let part = Part {
                arguments: arguments.to_owned(),
                text: own.map(|(text, _)| format!("{text}\n")).collect(),
            };
            parts.push((line, part));
        }
    }
    parts
}

fn printed(arguments: &str) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_headway"))
        .args(arguments.split(' '))
        .output()
        .expect("headway runs");
    String::from_utf8(output.stdout).expect("what it prints is text")
}
