//! `headway policies`: lists the policies with their own descriptions.

use crate::error::{hint, usage};
use crate::output;
use anyhow::Result;
use clap::ValueEnum;
use headway_policy::spec::{Description, Param};
use headway_policy::{Level, Policy};
use headway_report::table::Table;
use headway_study::registry::{interrupted_by, policy_json};
use serde_json::{Value, json};
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Args {
    /// Show this policy with its parameters; all policies without them by default
    #[arg(value_name = "NAME")]
    name: Option<String>,
    /// Only policies of this level
    #[arg(long, value_enum, value_name = "LEVEL")]
    level: Option<LevelFlag>,
    /// Format of the output
    #[arg(long, value_enum, default_value_t)]
    format: PoliciesFormat,
    /// File to write to instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// `--format`.
#[derive(ValueEnum, Clone, Copy, PartialEq, Eq, Debug, Default)]
enum PoliciesFormat {
    /// For people
    #[default]
    Table,
    /// For programs: the fields are stable
    Json,
    /// For spreadsheets
    Csv,
    /// For documents, with defaults in parentheses
    Markdown,
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
        let path = self.output.as_deref();
        let mut writer = output::open(path)?;
        let table = if self.name.is_some() {
            parameters(&chosen)
        } else {
            names(&chosen)
        };
        match self.format {
            PoliciesFormat::Json => {
                let policies: Vec<Value> = chosen.iter().map(policy_json).collect();
                output::json(&json!({ "policies": policies }), writer)?;
            }
            PoliciesFormat::Csv => output::table_csv(&table, writer)?,
            PoliciesFormat::Markdown => {
                writer.write_all(markdown(&chosen).as_bytes())?;
                writer.flush()?;
            }
            PoliciesFormat::Table => {
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
            let hint = hint(name, &names);
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
            runs(policy),
            about.summary,
        ]);
    }
    table
}

/// `live` where some command runs the policy on this machine.
fn runs(policy: &Policy) -> &'static str {
    if policy.live_command().is_some() {
        "live"
    } else {
        "simulated"
    }
}

fn parameters(policies: &[Policy]) -> Table {
    let columns = [
        "policy",
        "parameter",
        "default",
        "values",
        "while serving",
        "meaning",
    ];
    let mut table = Table::new(columns);
    for policy in policies {
        let about = policy.about();
        for param in about.params {
            table.push([
                about.name,
                param.key,
                &param.default_text(),
                &param.expected(),
                if param.while_serving {
                    "may change"
                } else {
                    "–"
                },
                param.meaning,
            ]);
        }
    }
    table
}

/// The policies as a table of a document.
fn markdown(policies: &[Policy]) -> String {
    let mut text = String::from(
        "| policy | also called | what it does | interrupts | runs | parameters (default) |\n|---|---|---|---|---|---|\n",
    );
    for policy in policies {
        let about = policy.about();
        let aliases: Vec<_> = about
            .aliases
            .iter()
            .map(|name| format!("`{name}`"))
            .collect();
        let runs = runs(policy);
        let who = interrupted_by(policy).unwrap_or("–");
        text += &format!(
            "| `{}` | {} | {} | {who} | {runs} | {} |\n",
            about.name,
            aliases.join(", "),
            about.summary,
            defaults(about)
        );
    }
    text
}

/// The parameters with their defaults, or a reference where a cell cannot hold them all.
fn defaults(about: &Description) -> String {
    const MOST: usize = 12;
    match about.params {
        [] => "–".into(),
        params if params.len() > MOST => {
            format!("{}: `headway policies {}`", params.len(), about.name)
        }
        params => params
            .iter()
            .map(|param: &Param| format!("`{}` ({})", param.key, param.default_text()))
            .collect::<Vec<_>>()
            .join(", "),
    }
}
