//! Tests which parts can be composed, and that a refusal names its reason.

use headway_policy::Shape;
use headway_policy::server::systems::{self, ServerSpec};
use headway_policy::spec::{Params, SpecError};

fn check(spec: &str) -> Result<Params, SpecError> {
    let shape = Shape::new(6).class(1_000, 0.5).class(100_000, 0.5);
    spec.parse::<ServerSpec>()?.check(&shape)
}

#[test]
fn what_cannot_be_combined_is_refused_with_the_reason() {
    let refused = [
        ("control=darc", "discipline=typed"),
        ("discipline=typed,control=darc", "placement=jbsq"),
        ("placement=reserved", "discipline=typed"),
        ("discipline=sjf,placement=shortest", "at once"),
        ("placement=choices,preemption=on-blocked", "at once"),
        ("preemption=srpt", "discipline=sjf"),
        ("preemption=edf", "discipline=edf"),
        ("preemption=levels", "discipline=mlfq"),
        ("preemption=index", "discipline=gittins"),
        ("discipline=typed,preemption=on-blocked", "discipline=fifo"),
        ("discipline=cscq,preemption=quantum", "to their end"),
        ("k=2", "none of the chosen parts takes it"),
        ("placement=jbsq,q=5us", "none of the chosen parts takes it"),
        (
            "discipline=drr,weights=1/2",
            "none of the chosen parts takes it",
        ),
        ("discipline=wrr,weights=1/2/3", "for each class"),
        ("discipline=wrr,weights=1/0", "above 0"),
        ("discipline=best", "fifo, typed"),
    ];
    for (parts, reason) in refused {
        let error = check(&format!("compose,{parts}")).expect_err(parts);
        let message = error.to_string();
        assert!(message.contains(reason), "{parts}: {message}");
    }
    let message = check("edf,cost=1us").unwrap_err().to_string();
    assert!(message.contains("nothing is interrupted"), "{message}");
}

/// Two requests of one worker would take turns for ever.
#[test]
fn a_request_does_not_pay_its_whole_quantum_for_an_interruption() {
    for (policy, key) in [
        ("tardis", "cost"),
        ("tiny-quanta", "cost"),
        ("shinjuku-sq", "cost"),
        ("shinjuku-mq", "cost"),
        ("concord", "notif"),
    ] {
        let spec = |charge, cost| format!("{policy},q=1us,charge={charge},{key}={cost}ns");
        let message = check(&spec("request", 1_000)).unwrap_err().to_string();
        assert!(message.contains("never gets on"), "{message}");
        assert!(check(&spec("request", 999)).is_ok(), "{policy}");
        assert!(check(&spec("blocking", 1_000)).is_ok(), "{policy}");
    }
}

/// A run can be repeated from the parameters it says it used.
#[test]
fn what_was_used_builds_the_same_again() {
    let specs = [
        "compose,discipline=typed,placement=jbsq,k=2,preemption=quantum,q=5us,control=darc",
        "compose,discipline=wrr,weights=3/1",
        "compose,discipline=edf,preemption=edf,slo=5",
        "compose,discipline=mq,pick=bvt,reentry=head",
        "sjf,size=profile",
        "srpt,cost=500ns,charge=request",
        "edf,preemption=edf,cost=1us",
        "drr",
        "wrr",
        "mlfq,levels=4",
        "gittins,q=3us",
        "cscq",
        "on-blocked,propagation=2us",
        "shinjuku-mq,q=2us",
    ];
    for spec in specs {
        let used = check(spec).unwrap_or_else(|error| panic!("{error}"));
        let name = spec.split(',').next().unwrap_or_default();
        let written = used.iter().map(|(key, value)| format!(",{key}={value}"));
        let again = format!("{name}{}", written.collect::<String>());
        assert_eq!(
            check(&again).unwrap_or_else(|error| panic!("{again}: {error}")),
            used
        );
    }
}

/// A command line is checked before there is a workload.
#[test]
fn without_classes_any_weights_are_grammar() {
    assert!(systems::check(&"wrr,weights=3/1".parse().unwrap(), &Shape::new(2)).is_ok());
}
