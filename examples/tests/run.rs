//! Each example is started, asked, and stopped.

mod started;

use headway::prelude::*;
use started::Example;
use std::process::Command;

fn start(program: &str) -> Example {
    Example::start(&mut Command::new(program))
}

#[test]
fn plain_gets_and_scans() {
    let mut example = start(env!("CARGO_BIN_EXE_plain"));
    let ok = |text: &str| (Status::Ok, text.to_owned());
    assert_eq!(example.ask(0, "get 7"), ok("word 7"));
    assert_eq!(example.ask(1, "scan"), ok("7890"));
    assert_eq!(example.ask(0, "get nothing").0, Status::Error);
    assert_eq!(example.ask(0, "put 7").0, Status::BadRequest);
    assert_eq!(example.stop(), "answered 4\n");
}

#[test]
fn pull_answers_in_the_order_of_its_loop() {
    let mut example = start(env!("CARGO_BIN_EXE_pull"));
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
    let mut example = start(program);
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
