//! The commands in a document's fenced blocks, and their shown output.

use crate::document::{At, Document};
use crate::shell::{Simple, commands};

/// A command line, with the output that follows it.
#[derive(Debug)]
pub(crate) struct Example {
    pub(crate) line: usize,
    pub(crate) commands: Vec<Simple>,
    /// The shown output; empty if the document shows none.
    pub(crate) output: Vec<String>,
    /// The first word of the block's info string.
    pub(crate) language: String,
    /// Whether the block is marked as the output of one machine at one time.
    pub(crate) live: bool,
}

/// The examples of a document, in order.
pub(crate) fn examples(document: &Document) -> Vec<Example> {
    let blocks = document.blocks.iter();
    blocks
        .flat_map(|block| of_block(block.line, &block.item.info, &block.item.text))
        .collect()
}

fn of_block(first: usize, info: &str, text: &str) -> Vec<Example> {
    let mut info = info.split_whitespace();
    let language = info.next().unwrap_or_default();
    let live = info.any(|word| word == "live");
    let mut examples: Vec<Example> = Vec::new();
    for At { line, item } in joined(text) {
        let command = match language {
            "sh" | "bash" => Some(item.as_str()),
            _ => item.strip_prefix("$ "),
        };
        match (command, examples.last_mut()) {
            (Some(command), _) => examples.push(Example {
                line: first + line,
                commands: commands(command),
                output: Vec::new(),
                language: language.to_string(),
                live,
            }),
            (None, Some(example)) => example.output.push(item.trim_end().to_string()),
            (None, None) => {}
        }
    }
    for example in &mut examples {
        while example.output.last().is_some_and(String::is_empty) {
            example.output.pop();
        }
    }
    examples
}

/// The lines of a text; a line that ends in a backslash is joined with the next.
fn joined(text: &str) -> Vec<At<String>> {
    let mut lines: Vec<At<String>> = Vec::new();
    let mut goes_on = false;
    for (number, text) in text.lines().enumerate() {
        let part = text.strip_suffix('\\');
        let item = part.unwrap_or(text);
        match lines.last_mut() {
            Some(line) if goes_on => line.item.push_str(item),
            _ => lines.push(At {
                line: number + 1,
                item: item.to_string(),
            }),
        }
        goes_on = part.is_some();
    }
    lines
}

#[test]
fn output_belongs_to_the_command_before_it() {
    let text = "```console live\n$ headway sim \\\n    --load 1\n a\n\n$ headway man\n```\n";
    let examples = examples(&Document::parse("x.md", text));
    let [first, second] = &examples[..] else {
        panic!("{examples:?}");
    };
    assert_eq!((first.line, second.line), (2, 6));
    assert_eq!(first.commands[0].words, ["headway", "sim", "--load", "1"]);
    assert_eq!(
        (&first.output[..], first.live),
        (&[" a".to_string()][..], true)
    );
}
