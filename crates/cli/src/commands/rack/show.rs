//! A switch's status as text.

use headway_report::table::Table;
use serde_json::Value;

/// A paragraph about the switch, and tables of its servers and types.
pub(super) fn text(status: &Value) -> String {
    let mut text = format!(
        "{}, process {}, up for {:.0} s\npolicy {}",
        word(&status["listen"]),
        status["pid"],
        status["uptime_s"].as_f64().unwrap_or_default(),
        word(&status["spec"]),
    );
    if let Some(load) = status["load"].as_f64() {
        text += &format!(
            "\nload {load:.2} in the last interval; {} layouts; groups differ from their demand by {} cores in sum",
            status["layouts"],
            figure(&status["discrepancy_cores"]),
        );
    }
    let lost = status["port"].as_object().into_iter().flatten();
    let counts = status["counts"].as_object().into_iter().flatten();
    let counts = counts.chain(lost);
    let counts = counts.filter(|(_, count)| count.as_u64().is_some_and(|count| count > 0));
    let counts: Vec<_> = counts
        .map(|(name, count)| format!("{} {count}", name.replace('_', " ")))
        .collect();
    if !counts.is_empty() {
        text += &format!("\n{}", counts.join(", "));
    }
    text += &format!("\n\n{}", servers(status));
    if !array(&status["types"]).is_empty() {
        text += &format!("\n\n{}", types(status));
    }
    if !array(&status["slo"]).is_empty() {
        text += &format!("\n\n{}", slo(status));
    }
    text
}

/// The bounds of the SLO, and the requests beyond them.
fn slo(status: &Value) -> Table {
    let mut table = Table::new(["SLO", "answered", "beyond", "beyond, %", "met"]);
    for bound in array(&status["slo"]) {
        let answered = bound["answered"].as_f64().filter(|&count| count > 0.0);
        let share = answered.zip(bound["exceeded"].as_f64());
        table = table.row([
            word(&bound["bound"]),
            whole(&bound["answered"]),
            whole(&bound["exceeded"]),
            share.map_or("–".into(), |(answered, beyond)| {
                format!("{:.3}", 100.0 * beyond / answered)
            }),
            match bound["met"].as_bool() {
                Some(true) => "yes".into(),
                Some(false) => "no".into(),
                None => "–".into(),
            },
        ]);
    }
    table
}

fn servers(status: &Value) -> Table {
    let mut table = Table::new(["server", "cores", "of groups", "unanswered", "state"]);
    for server in array(&status["servers"]) {
        let groups = array(&server["group_cores"]).iter().map(Value::to_string);
        let groups: Vec<_> = groups.collect();
        let state = if server["state"] == "drains" {
            "drains".into()
        } else if server["silent"].as_bool().unwrap_or_default() {
            "silent".into()
        } else if server["counted_cores"] != server["cores"] {
            format!("comes back, with {}", server["counted_cores"])
        } else {
            "answers".into()
        };
        table = table.row([
            word(&server["server"]),
            server["cores"].to_string(),
            groups.join(" + "),
            server["unanswered"].to_string(),
            state,
        ]);
    }
    table
}

fn types(status: &Value) -> Table {
    let mut table = Table::new(["type", "group", "requests", "mean µs", "demand, cores"]);
    for class in array(&status["types"]) {
        table = table.row([
            word(&class["name"]),
            whole(&class["group"]),
            whole(&class["requests"]),
            figure(&class["mean_us"]),
            figure(&class["demand_cores"]),
        ]);
    }
    table
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn word(value: &Value) -> String {
    value.as_str().unwrap_or("–").to_owned()
}

fn whole(value: &Value) -> String {
    value
        .as_u64()
        .map_or("–".into(), |number| number.to_string())
}

fn figure(value: &Value) -> String {
    value
        .as_f64()
        .map_or("–".into(), |number| format!("{number:.1}"))
}
