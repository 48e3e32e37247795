//! Explains in one sentence, with numbers, which servers get a type's requests.

use crate::error::{hint, usage};
use anyhow::Result;
use serde_json::Value;

/// The explanation for a type, by its byte or name.
pub(super) fn sentence(status: &Value, asked: &str) -> Result<String> {
    let types = array(&status["types"]);
    let is_asked = |class: &&Value| {
        class["name"].as_str() == Some(asked) || asked.parse().ok() == class["type"].as_u64()
    };
    let Some(class) = types.iter().find(is_asked) else {
        let names: Vec<&str> = types
            .iter()
            .filter_map(|class| class["name"].as_str())
            .collect();
        let known = if names.is_empty() {
            "; no type showed up yet".to_owned()
        } else {
            format!("{}; there are: {}", hint(asked, &names), names.join(", "))
        };
        return Err(usage("TYPE", format!("no type is called '{asked}'{known}")));
    };
    let name = class["name"].as_str().unwrap_or_default();
    let Some(number) = class["group"].as_u64() else {
        return Ok(format!(
            "{} may go to any server: '{}' does not tell types apart.",
            name,
            status["policy"].as_str().unwrap_or_default()
        ));
    };
    let group = &status["groups"][number as usize];
    let others = array(&group["types"]).iter().filter_map(Value::as_str);
    let others: Vec<&str> = others.filter(|other| *other != name).collect();
    let company = if others.is_empty() {
        "alone".to_owned()
    } else {
        format!("together with {}", others.join(", "))
    };
    let figures = match class["mean_us"].as_f64() {
        Some(mean_us) => format!(
            "takes {mean_us:.1} µs on average and makes up {:.1} % of the last second's requests; its demand is {:.1} cores",
            100.0 * class["share"].as_f64().unwrap_or_default(),
            class["demand_cores"].as_f64().unwrap_or_default(),
        ),
        None => "was not answered yet".into(),
    };
    let servers = array(&status["servers"]).iter().filter_map(|server| {
        let cores = server["group_cores"][number as usize].as_u64()?;
        (cores > 0).then(|| {
            format!(
                "{} ({cores})",
                server["server"].as_str().unwrap_or_default()
            )
        })
    });
    let servers: Vec<_> = servers.collect();
    let slo = of_slo(status, name);
    Ok(format!(
        "{name} {figures}; group {number} serves it {company}, needs {:.1} cores and has {}: {}{slo}.",
        group["demand_cores"].as_f64().unwrap_or_default(),
        group["cores"],
        servers.join(", "),
    ))
}

/// The bounds of this type alone with their counts, as a continuation of the sentence.
fn of_slo(status: &Value, name: &str) -> String {
    let scope = format!("class.{name}.");
    let bounds = array(&status["slo"]).iter().filter_map(|bound| {
        let text = bound["bound"].as_str()?.strip_prefix(&scope)?;
        let (answered, exceeded) = (bound["answered"].as_u64()?, bound["exceeded"].as_u64()?);
        let verdict = if bound["met"].as_bool()? {
            "met"
        } else {
            "missed"
        };
        Some(format!(
            "; {text} is {verdict}: {exceeded} of {answered} requests were beyond"
        ))
    });
    bounds.collect()
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn status() -> Value {
        json!({
            "policy": "pallas",
            "types": [
                { "type": 0, "name": "short", "group": 0, "mean_us": 10.0, "share": 0.9, "demand_cores": 3.8 },
                { "type": 77, "name": "type 77", "group": 1, "mean_us": null, "share": 0.0, "demand_cores": 0.0 },
            ],
            "groups": [
                { "types": ["short"], "cores": 4, "demand_cores": 3.8 },
                { "types": ["type 77"], "cores": 4, "demand_cores": 4.2 },
            ],
            "slo": [
                { "bound": "class.type 77.latency.p99<=1ms", "answered": 0, "exceeded": 0, "met": null },
                { "bound": "class.short.latency.p99<=250us", "answered": 300, "exceeded": 4, "met": false },
                { "bound": "overall.latency.p99<=250us", "answered": 300, "exceeded": 4, "met": false },
            ],
            "servers": [
                { "server": "10.0.0.1:7000", "group_cores": [4, 0] },
                { "server": "10.0.0.2:7000", "group_cores": [0, 4] },
            ],
        })
    }

    #[test]
    fn a_type_is_explained_with_its_numbers() {
        assert_eq!(
            sentence(&status(), "short").unwrap(),
            "short takes 10.0 µs on average and makes up 90.0 % of the last second's requests; its demand is 3.8 cores; group 0 serves it alone, \
             needs 3.8 cores and has 4: 10.0.0.1:7000 (4); latency.p99<=250us is missed: 4 of 300 requests were beyond."
        );
        assert_eq!(
            sentence(&status(), "77").unwrap(),
            "type 77 was not answered yet; group 1 serves it alone, needs 4.2 cores and has 4: 10.0.0.2:7000 (4)."
        );
    }

    #[test]
    fn a_type_that_there_is_not_is_refused_with_those_there_are() {
        let error = sentence(&status(), "shrot").unwrap_err().to_string();
        assert!(error.contains("did you mean 'short'"), "{error}");
    }
}
