//! Another implementation of threads: a program that measures an operation when asked to.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// A program that runs. It ends with its standard input.
pub(crate) struct Peer {
    name: String,
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts `NAME=PROGRAM`.
    pub(crate) fn start(peer: &str) -> Peer {
        let (name, program) = peer.split_once('=').expect("--peer NAME=PROGRAM");
        let mut process = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("cannot start {program}: {error}"));
        Peer {
            name: name.to_owned(),
            input: process.stdin.take().expect("it is piped"),
            output: BufReader::new(process.stdout.take().expect("it is piped")),
            process,
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// The nanoseconds of an operation.
    pub(crate) fn measure(&mut self, operation: &str) -> f64 {
        writeln!(self.input, "{operation}").expect("the peer reads");
        let mut answer = String::new();
        self.output.read_line(&mut answer).expect("the peer writes");
        let ns = answer.trim().parse();
        ns.unwrap_or_else(|_| panic!("{} said '{answer}' of {operation}", self.name))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
