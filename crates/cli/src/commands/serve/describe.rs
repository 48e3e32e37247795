//! What a server says at its start: everything that was chosen for it.

use crate::commands::load::types;
use headway_net::classify::{AnyClassifier, WireType};
use headway_policy::spec::Params;
use headway_runtime::{Admission, Class, Idle, Layout, Server};
use headway_workload::duration;

/// The policy with its parameters, who works, how threads wait, who is interrupted, and which class goes by which type.
pub(super) fn lines(
    server: &Server,
    workers: usize,
    admission: Admission,
    classifier: &AnyClassifier,
    classes: &[Class],
) -> Vec<String> {
    vec![
        format!(
            "policy {}; {workers} {}, {}; idle threads {}; {}",
            policy(server.policy(), server.params()),
            if workers == 1 { "worker" } else { "workers" },
            layout(server.layout()),
            idle(server.idle()),
            resume(admission),
        ),
        by_type(classifier, classes),
    ]
}

fn policy(name: &str, params: &Params) -> String {
    let params = params.iter().map(|(key, value)| format!(",{key}={value}"));
    params.fold(name.to_owned(), |text, param| text + &param)
}

fn layout(layout: Option<Layout>) -> &'static str {
    match layout {
        Some(Layout::Inline) => "which take turns as the dispatcher (inline)",
        Some(Layout::Dedicated | Layout::Auto) => {
            "a dispatcher with a thread of its own (dedicated)"
        }
        None => "no dispatcher: the network steers requests to them",
    }
}

fn idle(idle: Idle) -> String {
    match idle {
        Idle::Spin => "spin".into(),
        Idle::SpinThenPark { spin_ns } => {
            format!("spin for {}, then park", duration::format(spin_ns))
        }
        Idle::Park => "park".into(),
    }
}

/// A server of the command never lets requests change threads: what its services keep of them is not known here.
fn resume(admission: Admission) -> &'static str {
    match (admission.dispatcher_interrupts, admission.workers_interrupt) {
        (false, false) => "requests run to their end",
        (true, _) => "the dispatcher interrupts requests, which go on at their own worker",
        (false, true) => "workers interrupt requests, which go on at their own worker",
    }
}

fn by_type(classifier: &AnyClassifier, classes: &[Class]) -> String {
    let names: Vec<&str> = classes.iter().map(|class| class.name.as_str()).collect();
    let types: Vec<u8> = (0..=u8::MAX).take(names.len()).collect();
    match classifier {
        AnyClassifier::Header(header) if *header == WireType::identity() => {
            format!("classes by type: {}", types::line(&types, &names))
        }
        _ => format!(
            "classes by number of the classifier: {}",
            types::line(&types, &names)
        ),
    }
}
