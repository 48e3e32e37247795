//! Splits command lines like a shell, for the syntax that the documents use.

use std::iter::Peekable;
use std::str::Chars;

/// A command without the pipes and redirections around it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Simple {
    pub(crate) words: Vec<String>,
    /// The file of the redirected output; `> /dev/null` hides the output from a reader too.
    pub(crate) output: Option<String>,
    /// Whether another command reads the output.
    pub(crate) piped: bool,
}

impl Simple {
    /// The arguments, if this is the command `headway`.
    pub(crate) fn headway(&self) -> Option<&[String]> {
        let variables = self
            .words
            .iter()
            .take_while(|word: &&String| word.contains('='))
            .count();
        let (program, arguments) = self.words[variables..].split_first()?;
        (program == "headway" || program.ends_with("/headway")).then_some(arguments)
    }
}

/// The commands of a line, which form a pipeline or a sequence.
pub(crate) fn commands(line: &str) -> Vec<Simple> {
    let mut commands = vec![Simple::default()];
    let mut letters = line.chars().peekable();
    let mut redirected = false;
    while let Some(&letter) = letters.peek() {
        let command = commands.last_mut().expect("there is always one");
        match letter {
            '#' => break,
            '|' | ';' | '&' => {
                letters.next();
                command.piped = letter == '|' && letters.peek() != Some(&'|');
                commands.push(Simple::default());
            }
            '>' => {
                letters.next();
                redirected = true;
            }
            letter if letter.is_whitespace() => drop(letters.next()),
            _ => {
                let word = word(&mut letters);
                if redirected {
                    command.output = Some(word);
                } else {
                    command.words.push(word);
                }
                redirected = false;
            }
        }
    }
    commands.retain(|command| !command.words.is_empty());
    commands
}

/// The next word, without its quotes.
fn word(letters: &mut Peekable<Chars<'_>>) -> String {
    let mut word = String::new();
    while let Some(&letter) = letters.peek() {
        if letter.is_whitespace() || "|;&>".contains(letter) {
            break;
        }
        letters.next();
        match letter {
            '\'' | '"' => word.extend(letters.by_ref().take_while(|&next| next != letter)),
            '\\' => word.extend(letters.next()),
            _ => word.push(letter),
        }
    }
    word
}

#[test]
fn lines_are_taken_apart_as_by_a_shell() {
    let simple = |words: &[&str]| Simple {
        words: words.iter().map(|word| word.to_string()).collect(),
        ..Simple::default()
    };
    let slo = "headway sim --slo 'a<=1 > b' > /dev/null # why";
    let expected = Simple {
        output: Some("/dev/null".to_string()),
        ..simple(&["headway", "sim", "--slo", "a<=1 > b"])
    };
    assert_eq!(commands(slo), [expected]);
    let first = Simple {
        piped: true,
        ..simple(&["headway", "man"])
    };
    let pipe = "headway man | man -l - && A=b target/headway x";
    let expected = [
        first,
        simple(&["man", "-l", "-"]),
        simple(&["A=b", "target/headway", "x"]),
    ];
    assert_eq!(commands(pipe), expected);
    assert_eq!(expected[2].headway(), Some(&["x".to_string()][..]));
}
