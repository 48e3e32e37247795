//! The description that a server prints at its start: all its settings.

use super::interrupt::Interruption;
use super::settings::ServeSettings;
use crate::commands::load::types;
use headway_net::classify::{AnyClassifier, WireType};
use headway_policy::Resume;
use headway_policy::spec::Params;
use headway_runtime::{Admission, DeclaredClass, Idle, Layout, Mechanism, Server};
use headway_workload::duration;

/// The policy with its parameters, the threads, how they wait, what interrupts requests, and the type of each class.
pub(super) fn lines(
    server: &Server,
    settings: &ServeSettings,
    admission: Admission,
    classes: &[DeclaredClass],
) -> Vec<String> {
    let workers = settings.workers.value;
    vec![
        format!(
            "policy {}; {workers} {}, {}; idle threads {}; {}",
            policy(server.policy(), server.params()),
            if workers == 1 { "worker" } else { "workers" },
            layout(server.layout(), admission),
            idle(server.idle()),
            interruption(server, admission, &settings.interruption),
        ),
        by_type(&settings.classifier, classes),
    ]
}

fn policy(name: &str, params: &Params) -> String {
    let params = params.iter().map(|(key, value)| format!(",{key}={value}"));
    params.fold(name.to_owned(), |text, param| text + &param)
}

fn layout(layout: Option<Layout>, admission: Admission) -> String {
    let dispatchers = admission.dispatchers;
    match layout {
        Some(Layout::Inline) if dispatchers > 1 => {
            format!("which take turns as {dispatchers} dispatchers (inline)")
        }
        Some(Layout::Inline) => "which take turns as the dispatcher (inline)".into(),
        Some(Layout::Dedicated | Layout::Auto) if dispatchers > 1 => {
            format!("{dispatchers} dispatchers with threads of their own (dedicated)")
        }
        Some(Layout::Dedicated | Layout::Auto) => {
            "a dispatcher with a thread of its own (dedicated)".into()
        }
        None if admission.limits_queues => {
            "no dispatcher: they help themselves from one queue".into()
        }
        None => "no dispatcher: the network steers requests to them".into(),
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

/// The threads that interrupt requests, their mechanism, and where interrupted requests go on.
fn interruption(server: &Server, admission: Admission, how: &Interruption) -> String {
    if !admission.interrupts() {
        return "requests run to their end".into();
    }
    let takes_turns = server.layout() == Some(Layout::Inline);
    let who = match (admission.dispatcher_interrupts, how.mechanism()) {
        _ if server.monitor_layout() == Some(Layout::Dedicated) => {
            "a monitor with a thread of its own (dedicated) interrupts requests"
        }
        _ if server.monitor_layout().is_some() => "workers interrupt their own requests (inline)",
        (true, Mechanism::Signal) => "the dispatcher interrupts requests by signal",
        (true, Mechanism::Tsc) if !takes_turns => {
            "workers interrupt requests by their own clocks, as the dispatcher says"
        }
        (true, _) if !takes_turns => "the dispatcher interrupts requests",
        _ => "workers interrupt their own requests",
    };
    let whom = if how.by_feedback() {
        " where they say that they are long"
    } else {
        ""
    };
    let place = match how.settings().resume() {
        Resume::OwnWorker => "at their own worker",
        Resume::Anywhere => "at any worker",
    };
    format!("{who}{whom}, which go on {place}")
}

fn by_type(classifier: &AnyClassifier, classes: &[DeclaredClass]) -> String {
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
