//! The policies with their parameters, for programs.

use headway_policy::Policy;
use headway_policy::server::systems::Preemption;
use headway_policy::spec::{Param, ParamKind};
use serde_json::{Value, json};

/// The thread that interrupts requests under the policy's default parameters.
#[must_use]
pub fn interrupted_by(policy: &Policy) -> Option<&'static str> {
    let Policy::Server(server) = policy else {
        return None;
    };
    match server.defaults.preemption {
        Preemption::None => None,
        Preemption::ByMonitor {
            on_dispatcher: true,
        } => Some("dispatcher"),
        Preemption::ByMonitor {
            on_dispatcher: false,
        } => Some("timer"),
        Preemption::BySlices => Some("worker"),
    }
}

/// A policy with its parameters: what `headway policies --format json` prints of it.
#[must_use]
pub fn policy_json(policy: &Policy) -> Value {
    let about = policy.about();
    let params = about.params.iter().map(|param| {
        json!({
            "key": param.key,
            "meaning": param.meaning,
            "default": param.default_text(),
            "values": param.values_text(),
            "unit": param.unit,
            "range": range_json(param),
            "while_serving": param.while_serving,
        })
    });
    let mut value = json!({
        "name": about.name,
        "aliases": about.aliases,
        "level": policy.level().name(),
        "summary": about.summary,
        "paper": about.paper,
        "live": policy.live_command().is_some(),
        "params": params.collect::<Vec<_>>(),
    });
    if let Policy::Server(server) = policy {
        value["dispatchers"] = server.defaults.dispatchers.into();
        value["interrupted_by"] = interrupted_by(policy).into();
    }
    value
}

/// The values that a parameter may have, for programs: a `kind` with `min` and `max`, times in ns, or `choices`; null for texts of a form of their own.
/// A number's `min` is null where it is anything above 0, and its `max` where there is no bound.
fn range_json(param: &Param) -> Value {
    match param.kind {
        ParamKind::Number { min, max, .. } => json!({
            "kind": "number",
            "min": (min > f64::MIN_POSITIVE || min == 0.0).then_some(min),
            "max": (max < f64::MAX).then_some(max),
        }),
        ParamKind::Whole { min, max, .. } => json!({"kind": "whole", "min": min, "max": max}),
        ParamKind::Time { min, max, .. } => json!({"kind": "time", "min": min, "max": max}),
        ParamKind::Word(choices) => json!({"kind": "word", "choices": choices}),
        ParamKind::Text { .. } => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_listed_with_its_parameters() {
        for policy in Policy::all() {
            let value = policy_json(&policy);
            assert_eq!(value["name"], policy.about().name);
            let params = value["params"].as_array().unwrap();
            assert_eq!(params.len(), policy.about().params.len());
        }
        let concord = policy_json(&Policy::find("concord").unwrap());
        assert_eq!(concord["interrupted_by"], "dispatcher");
        assert_eq!(concord["live"], true);
        let darc = policy_json(&Policy::find("darc").unwrap());
        let mut params = darc["params"].as_array().unwrap().iter();
        let delta = params.find(|param| param["key"] == "delta").unwrap();
        assert_eq!(delta["range"]["kind"], "number");
        assert!(delta["range"]["min"].as_f64() < delta["range"]["max"].as_f64().or(Some(1e9)));
    }
}
