//! Files of costs: what `headway calibrate -o FILE` writes, or the costs of one layout alone.

use crate::parse::within_an_hour;
use headway_policy::PolicySpec;
use headway_sim::{Costs, MachineCosts, ThreadLayout};
use headway_workload::file::{SETTINGS_BYTES_MAX, read_text};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// The costs of a file.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredCosts {
    /// By layout.
    pub costs: MachineCosts,
    /// Whether dispatchers and monitors have threads of their own, unless somebody chooses.
    dedicated: bool,
}

/// What a calibration says beside the figures that its costs were made from.
#[derive(Deserialize)]
struct CalibrationFile {
    costs: Costs,
    #[serde(default)]
    layouts: MachineCosts,
    layout: Option<String>,
}

impl MeasuredCosts {
    /// The costs under a policy, in the layout that the file was made for.
    #[must_use]
    pub fn of_policy(&self, policy: &PolicySpec) -> Costs {
        let (PolicySpec::Server(server)
        | PolicySpec::Rack {
            inner: Some(server),
            ..
        }) = policy
        else {
            return self.costs.other;
        };
        let layout = ThreadLayout::of(&server.facts(), self.dedicated);
        self.costs.of(layout)
    }
}

/// Reads a file of `headway calibrate`, or a file with the costs of one layout alone.
///
/// # Errors
/// The file cannot be read, or is neither.
pub fn read_costs(path: &Path) -> Result<MeasuredCosts, String> {
    let wrong = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
    let text = read_text(path, SETTINGS_BYTES_MAX).map_err(|error| wrong(&error))?;
    let value: Value = serde_json::from_str(&text).map_err(|error| wrong(&error))?;
    if !value.is_object() {
        return Err(wrong(
            &"costs are an object, such as {\"dispatch_ns\": 100}",
        ));
    }
    check_times(&value).map_err(|error| wrong(&error))?;
    if value.get("costs").is_none() {
        let costs: Costs = serde_json::from_value(value).map_err(|error| wrong(&error))?;
        return Ok(MeasuredCosts {
            costs: costs.into(),
            dedicated: costs.look_ns == 0,
        });
    }
    let file: CalibrationFile = serde_json::from_value(value).map_err(|error| wrong(&error))?;
    Ok(MeasuredCosts {
        costs: MachineCosts {
            other: file.costs,
            ..file.layouts
        },
        dedicated: file.layout.as_deref() != Some(ThreadLayout::Inline.name()),
    })
}

/// Refuses times that would not fit the simulated time, wherever they stand.
fn check_times(value: &Value) -> Result<(), String> {
    let Some(fields) = value.as_object() else {
        return Ok(());
    };
    fields
        .iter()
        .try_for_each(|(key, value)| match value.as_u64() {
            Some(ns) if key.ends_with("_ns") => within_an_hour(ns)
                .map(drop)
                .map_err(|problem| format!("{key}: {problem}")),
            _ => check_times(value),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tried(text: &str) -> Result<MeasuredCosts, String> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("costs.json");
        std::fs::write(&path, text).unwrap();
        read_costs(&path)
    }

    fn read(text: &str) -> MeasuredCosts {
        tried(text).unwrap()
    }

    #[test]
    fn costs_beyond_an_hour_and_lists_are_refused() {
        for text in [
            r#"{"overhead_ns": 18446744073709551615}"#,
            r#"{"costs": {}, "layouts": {"inline": {"look_ns": 3600000000001}}}"#,
        ] {
            let why = tried(text).unwrap_err();
            assert!(why.contains("_ns: ") && why.contains("an hour"), "{why}");
        }
        assert!(tried("[5000]").unwrap_err().contains("an object"));
        assert!(tried(r#"{"overhead_ns": 3600000000000}"#).is_ok());
    }

    fn overhead_ns(file: &MeasuredCosts, policy: &str) -> u64 {
        file.of_policy(&policy.parse().unwrap()).overhead_ns
    }

    #[test]
    fn each_policy_has_the_costs_of_its_layout() {
        let text = r#"{"costs": {"overhead_ns": 1}, "layout": "LAYOUT", "machine": "here", "layouts": {"dedicated": {"overhead_ns": 1},
            "inline": {"overhead_ns": 2}, "steered": {"overhead_ns": 3}, "monitored": {"overhead_ns": 4}, "unplaced": {"overhead_ns": 5}}}"#;
        let all = |layout| {
            let file = read(&text.replace("LAYOUT", layout));
            ["darc", "synergy", "d-fcfs", "tardis"].map(|policy| overhead_ns(&file, policy))
        };
        assert_eq!(all("dedicated"), [1, 4, 3, 5]);
        assert_eq!(all("inline"), [2, 3, 3, 5]);
    }

    #[test]
    fn files_of_one_layout_and_costs_alone_are_still_read() {
        let old = r#"{"costs": {"overhead_ns": 7}, "layout": "dedicated", "pipeline_ns": 9}"#;
        for text in [old, r#"{"overhead_ns": 7}"#] {
            let file = read(text);
            for policy in ["darc", "synergy", "tardis", "pallas"] {
                assert_eq!(overhead_ns(&file, policy), 7, "{text} {policy}");
            }
        }
    }
}
