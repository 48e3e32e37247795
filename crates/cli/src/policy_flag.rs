//! The value of `--policy`: the parser takes any spec; help and completions name the policies that the command can run.

use clap::builder::{PossibleValue, StringValueParser, TypedValueParser};
use clap::error::Error;
use clap::{Arg, Command};
use headway_policy::{Level, Policy};
use std::ffi::OsStr;

/// The placeholder of the flag's value.
pub(crate) const VALUE: &str = "NAME[,KEY=VALUE…]";

/// The policies that a command can run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Runs {
    /// Policies of all levels.
    All,
    /// Policies of servers and racks.
    Servers,
    /// Policies of one server that start and stop requests.
    OneServer,
    /// Policies of racks, which a live switch runs.
    Racks,
    /// Policies that a live server runs.
    Live,
    /// Policies of hosts, which a live daemon runs.
    Hosts,
}

impl Runs {
    fn includes(self, policy: &Policy) -> bool {
        match (self, policy) {
            (Self::All, _) => true,
            (Self::Servers, policy) => policy.level() != Level::Host,
            (Self::OneServer, policy) => matches!(policy, Policy::Server(_)),
            (Self::Racks, policy) => policy.level() == Level::Rack,
            (Self::Live, policy) => {
                policy.level() == Level::Server && policy.live_command().is_some()
            }
            (Self::Hosts, policy) => policy.level() == Level::Host,
        }
    }

    fn policies(self) -> impl Iterator<Item = Policy> {
        Policy::all().filter(move |policy| self.includes(policy))
    }

    /// The flag's long help: `what`, its purpose, and the policies by level.
    pub(crate) fn help(self, what: &str) -> String {
        let mut text = format!("{what}\n");
        for level in Level::ALL {
            let policies = self.policies().filter(|policy| policy.level() == level);
            let names: Vec<_> = policies.map(|policy| policy.about().name).collect();
            if !names.is_empty() {
                text += &format!("\nOf a {}: {}.", level.name(), names.join(", "));
            }
        }
        text + "\n\n'headway policies NAME' shows the parameters of one."
    }
}

impl TypedValueParser for Runs {
    type Value = String;

    /// Any text is accepted, since a spec continues after the name; the command reports mistakes.
    fn parse_ref(
        &self,
        command: &Command,
        flag: Option<&Arg>,
        value: &OsStr,
    ) -> Result<String, Error> {
        StringValueParser::new().parse_ref(command, flag, value)
    }

    /// The completions.
    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.policies().map(|policy: Policy| {
            let about = policy.about();
            PossibleValue::new(about.name).help(about.summary)
        })))
    }
}
