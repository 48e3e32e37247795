//! Each example is started, asked, and stopped.

use headway::prelude::*;
use std::io::{BufRead, BufReader, Read};
use std::net::UdpSocket;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

/// An example that runs, and a client of it.
struct Example {
    child: Child,
    printed: BufReader<ChildStdout>,
    client: UdpSocket,
    asked: u32,
}

impl Example {
    fn start(program: &str) -> Self {
        let mut child = Command::new(program)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut printed = BufReader::new(child.stdout.take().unwrap());
        let mut address = String::new();
        printed.read_line(&mut address).unwrap();
        let client = UdpSocket::bind("127.0.0.1:0").unwrap();
        client.connect(address.trim()).unwrap();
        client
            .set_read_timeout(Some(Duration::from_secs(60)))
            .unwrap();
        Self {
            child,
            printed,
            client,
            asked: 0,
        }
    }

    fn send(&mut self, class: u8, payload: &str) -> u32 {
        self.asked += 1;
        let header = Header {
            class,
            flag: Flag::REQUEST,
            index: self.asked,
            time_ns: 0,
        };
        let request = [&header.encode()[..], payload.as_bytes()].concat();
        self.client.send(&request).unwrap();
        self.asked
    }

    /// The next answer: to which request, how it went, and its payload.
    fn receive(&self) -> (u32, Status, String) {
        let mut answer = [0; 2048];
        let len = self.client.recv(&mut answer).unwrap();
        let (header, payload) = Header::parse(&answer[..len]).unwrap();
        let payload = String::from_utf8(payload.to_vec()).unwrap();
        (header.index, header.flag.status(), payload)
    }

    fn ask(&mut self, class: u8, payload: &str) -> (Status, String) {
        let index = self.send(class, payload);
        let (answered, status, payload) = self.receive();
        assert_eq!(answered, index);
        (status, payload)
    }

    /// Its last words, once its standard input has ended.
    fn stop(mut self) -> String {
        drop(self.child.stdin.take());
        let mut words = String::new();
        self.printed.read_to_string(&mut words).unwrap();
        assert!(self.child.wait().unwrap().success(), "{words}");
        words
    }
}

#[test]
fn plain_gets_and_scans() {
    let mut example = Example::start(env!("CARGO_BIN_EXE_plain"));
    let ok = |text: &str| (Status::Ok, text.to_owned());
    assert_eq!(example.ask(0, "get 7"), ok("word 7"));
    assert_eq!(example.ask(1, "scan"), ok("7890"));
    assert_eq!(example.ask(0, "get nothing").0, Status::Error);
    assert_eq!(example.ask(0, "put 7").0, Status::BadRequest);
    assert_eq!(example.stop(), "answered 4\n");
}

#[test]
fn pull_answers_in_the_order_of_its_loop() {
    let mut example = Example::start(env!("CARGO_BIN_EXE_pull"));
    for number in 1..=3 {
        let (status, answer) = example.ask(0, &number.to_string());
        let (echoed, served) = answer.split_once(' ').unwrap();
        assert_eq!((status, echoed), (Status::Ok, &*number.to_string()));
        assert!((1..=3).contains(&served.parse::<u64>().unwrap()));
    }
    assert_eq!(example.stop(), "answered 3\n");
}

/// A long request, then short ones, until a short one overtakes it; the worker is alone, so the long one was interrupted.
fn overtaken(program: &str, long: &str, answer: impl Fn(&str) -> bool) {
    let mut example = Example::start(program);
    assert_eq!(example.ask(0, ""), (Status::Ok, "pong".into()));
    assert_eq!(example.ask(1, "many").0, Status::BadRequest);
    for _ in 0..1000 {
        let slow = example.send(1, long);
        example.send(0, "");
        let answers = [example.receive(), example.receive()];
        let slow_answer = answers.iter().find(|answer| answer.0 == slow).unwrap();
        assert!(answer(&slow_answer.2), "{slow_answer:?}");
        if answers[1].0 == slow {
            let words = example.stop();
            assert!(!words.contains("interrupted 0"), "{words}");
            return;
        }
    }
    panic!("no short request overtook a long one");
}

#[test]
fn checkpoints_let_a_ping_overtake_a_count() {
    overtaken(env!("CARGO_BIN_EXE_checkpoints"), "60000", |answer| {
        answer == "6057"
    });
}

#[test]
fn preemptible_lets_a_ping_overtake_a_sum() {
    overtaken(env!("CARGO_BIN_EXE_preemptible"), "5000", |answer| {
        answer.parse::<u64>().is_ok()
    });
}
