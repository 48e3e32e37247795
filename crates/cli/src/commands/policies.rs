//! `headway policies`: what there is to choose from, as the policies describe themselves.

use crate::args::Destination;
use crate::error::{nearest, usage};
use crate::output::{self, Format};
use anyhow::Result;
use clap::ValueEnum;
use headway_policy::systems::{Engines, Preemption};
use headway_policy::{Level, Policy};
use headway_report::table::Table;
use serde_json::{Value, json};
use std::io::Write;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show this policy with its parameters; all policies without them by default
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Only policies of this level
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LevelFlag>,
    #[command(flatten)]
    to: Destination,
}

/// `--level`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug)]
enum LevelFlag {
    /// Which request a server's workers run next
    Server,
    /// Which server of a rack gets a request
    Rack,
    /// Which application of a host gets a core
    Host,
}

impl From<LevelFlag> for Level {
    fn from(flag: LevelFlag) -> Self {
        match flag {
            LevelFlag::Server => Self::Server,
            LevelFlag::Rack => Self::Rack,
            LevelFlag::Host => Self::Host,
        }
    }
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let chosen = self.chosen()?;
        let path = self.to.output.as_deref();
        let mut writer = output::open(path)?;
        let table = if self.name.is_some() {
            parameters(&chosen)
        } else {
            names(&chosen)
        };
        match self.to.format {
            Format::Json => {
                let policies: Vec<Value> = chosen.iter().map(as_json).collect();
                output::json(&json!({ "policies": policies }), writer)?;
            }
            Format::Csv => output::table_csv(&table, writer)?,
            Format::Table => {
                if self.name.is_some() {
                    for policy in &chosen {
                        writeln!(
                            writer,
                            "{}: {}\n",
                            policy.about().name,
                            policy.about().summary
                        )?;
                    }
                }
                writeln!(writer, "{}", output::shown(&table, path))?;
                writer.flush()?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }

    fn chosen(&self) -> Result<Vec<Policy>> {
        let level = self.level.map(Level::from);
        let of_level = |policy: &Policy| level.is_none_or(|level| policy.level() == level);
        let Some(name) = &self.name else {
            return Ok(Policy::all().filter(of_level).collect());
        };
        let called = Policy::all().filter(of_level);
        let called: Vec<_> = called.filter(|it| it.about().is_called(name)).collect();
        if called.is_empty() {
            let names: Vec<_> = Policy::all()
                .filter(of_level)
                .map(|it| it.about().name)
                .collect();
            let hint = nearest(name, &names)
                .map_or(String::new(), |word| format!("; did you mean '{word}'?"));
            return Err(usage("NAME", format!("no policy is called '{name}'{hint}")));
        }
        Ok(called)
    }
}

fn names(policies: &[Policy]) -> Table {
    let mut table = Table::new(["policy", "also called", "level", "runs", "what it does"]);
    for policy in policies {
        let about = policy.about();
        table.push([
            about.name,
            &about.aliases.join(", "),
            policy.level().name(),
            if runs_live(policy) {
                "live"
            } else {
                "simulated"
            },
            about.summary,
        ]);
    }
    table
}

fn parameters(policies: &[Policy]) -> Table {
    let mut table = Table::new(["policy", "parameter", "default", "values", "meaning"]);
    for policy in policies {
        let about = policy.about();
        for param in about.params {
            table.push([
                about.name,
                param.key,
                &param.default_text(),
                &param.expected(),
                param.meaning,
            ]);
        }
    }
    table
}

fn runs_live(policy: &Policy) -> bool {
    matches!(policy, Policy::Server(server) if server.engines == Engines::All)
}

fn as_json(policy: &Policy) -> Value {
    let about = policy.about();
    let params = about.params.iter().map(|param| {
        json!({
            "key": param.key,
            "meaning": param.meaning,
            "default": param.default_text(),
            "values": param.values_text(),
            "unit": param.unit,
        })
    });
    let mut value = json!({
        "name": about.name,
        "aliases": about.aliases,
        "level": policy.level().name(),
        "summary": about.summary,
        "paper": about.paper,
        "live": runs_live(policy),
        "params": params.collect::<Vec<_>>(),
    });
    if let Policy::Server(server) = policy {
        let facts = &server.defaults;
        value["dispatchers"] = facts.dispatchers.into();
        value["interrupted_by"] = match facts.preemption {
            Preemption::None => Value::Null,
            Preemption::ByMonitor {
                on_dispatcher: true,
            } => "dispatcher".into(),
            Preemption::ByMonitor {
                on_dispatcher: false,
            } => "timer".into(),
            Preemption::BySlices => "worker".into(),
        };
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_policy_is_listed_with_its_parameters() {
        for policy in Policy::all() {
            let value = as_json(&policy);
            assert_eq!(value["name"], policy.about().name);
            let params = value["params"].as_array().unwrap();
            assert_eq!(params.len(), policy.about().params.len());
        }
        let concord = as_json(&Policy::find("concord").unwrap());
        assert_eq!(concord["interrupted_by"], "dispatcher");
        assert_eq!(concord["live"], true);
    }
}
