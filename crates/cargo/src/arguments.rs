//! The command line: it takes out the pass's options and leaves the rest to cargo.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

use headway_words::hint;

use crate::failure::Failure;

pub(crate) const HELP: &str = "\
cargo, with preemption probes in the crates it compiles

Usage: cargo headway [OPTIONS] COMMAND [CARGO'S OPTIONS]

Commands: build, run, test, bench, rustc, clean, and b, r, t

Options, before or behind the command:
      --probe flag|tsc   what probes look at: a flag that a scheduler raises (default), or the
                         time-stamp counter
      --distance N       at most N weighted instructions between two probes [default: 8000]
      --crates A,B       probes in exactly these crates; without it in all that cargo did not
                         fetch, but for Headway's own
      --report DIR       compile everything anew, and write each probe and its reason to DIR, a
                         file per module
  -h, --help             this text
  -V, --version          the version

HEADWAY_PROBE, HEADWAY_PROBE_DISTANCE, HEADWAY_CRATES and HEADWAY_REPORT are heeded where the option
is not given.
HEADWAY_PASS_DIR is the directory of the compiler pass, if it is neither installed nor built in
Headway's sources. Programs are in target/headway, or in a directory there for other options.
";

const COMMANDS: [&str; 9] = [
    "build", "run", "test", "bench", "rustc", "clean", "b", "r", "t",
];

/// The least distance: the pass keeps no closer one.
const LEAST_DISTANCE: u32 = 16;

/// The action.
#[derive(Debug, PartialEq)]
pub(crate) enum CargoAction {
    /// Print the help.
    Help,
    /// Print the version.
    Version,
    /// Run cargo.
    Run(CargoRequest),
}

/// The condition that probes check.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum ProbeSource {
    #[default]
    Flag,
    Tsc,
}

impl ProbeSource {
    pub(crate) fn name(self) -> &'static str {
        match self {
            ProbeSource::Flag => "flag",
            ProbeSource::Tsc => "tsc",
        }
    }
}

/// A run of cargo with the pass.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct CargoRequest {
    pub(crate) probe: ProbeSource,
    /// Distance between probes in weighted instructions; `None` is the pass's own default.
    pub(crate) distance: Option<u32>,
    /// Crates with probes, by rustc's names, sorted; if empty, all crates that cargo did not fetch.
    pub(crate) crates: Vec<String>,
    /// The directory for reports.
    pub(crate) report: Option<PathBuf>,
    /// The command and cargo's own arguments.
    pub(crate) cargo: Vec<OsString>,
}

impl CargoRequest {
    /// Reads the arguments as cargo passes them: cargo's name for this command first.
    pub(crate) fn parse(
        arguments: impl IntoIterator<Item = OsString>,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<CargoAction, Failure> {
        let mut arguments = arguments.into_iter().peekable();
        arguments.next_if(|first| first == "headway");
        let mut request = Self::of_environment(&variable)?;
        while let Some(argument) = arguments.next() {
            if argument == "--" {
                request.cargo.push(argument);
                request.cargo.extend(arguments);
                break;
            }
            let in_front = request.cargo.is_empty();
            match argument.to_str() {
                Some("-h" | "--help") if in_front => return Ok(CargoAction::Help),
                Some("-V" | "--version") if in_front => return Ok(CargoAction::Version),
                Some(text) if request.takes(text, &mut arguments)? => {}
                Some(text) if in_front => {
                    known(text)?;
                    request.cargo.push(argument);
                }
                _ => request.cargo.push(argument),
            }
        }
        if request.cargo.is_empty() {
            return Err(Failure::Usage(format!("no command for cargo\n\n{HELP}")));
        }
        if variable("HEADWAY_PROBES").as_deref() == Some("off") {
            return Err(Failure::Usage(
                "HEADWAY_PROBES=off: this command builds with probes; plain cargo builds without, in a directory of its own".into(),
            ));
        }
        Ok(CargoAction::Run(request))
    }

    fn of_environment(variable: impl Fn(&str) -> Option<String>) -> Result<Self, Failure> {
        let mut request = Self::default();
        for (name, option) in [
            ("HEADWAY_PROBE", "--probe"),
            ("HEADWAY_PROBE_DISTANCE", "--distance"),
            ("HEADWAY_CRATES", "--crates"),
            ("HEADWAY_REPORT", "--report"),
        ] {
            if let Some(value) = variable(name).filter(|value| !value.is_empty()) {
                request.set(option, name, &value)?;
            }
        }
        Ok(request)
    }

    /// Whether the argument is an option of this command; its value may be the next argument.
    fn takes(
        &mut self,
        argument: &str,
        rest: &mut impl Iterator<Item = OsString>,
    ) -> Result<bool, Failure> {
        let (option, value) = match argument.split_once('=') {
            Some((option, value)) => (option, Some(value)),
            None => (argument, None),
        };
        if !["--probe", "--distance", "--crates", "--report"].contains(&option) {
            return Ok(false);
        }
        let value = match value {
            Some(value) => value.to_owned(),
            None => rest
                .next()
                .and_then(|value| value.into_string().ok())
                .ok_or_else(|| Failure::Usage(format!("{option}: it takes a value")))?,
        };
        self.set(option, option, &value)?;
        Ok(true)
    }

    /// `place` is what to name when the value cannot be.
    fn set(&mut self, option: &str, place: &str, value: &str) -> Result<(), Failure> {
        let expected = |what: &str| Err(Failure::Usage(format!("{place}: '{value}': {what}")));
        match (option, value) {
            ("--probe", "flag") => self.probe = ProbeSource::Flag,
            ("--probe", "tsc") => self.probe = ProbeSource::Tsc,
            ("--probe", _) => return expected("expected flag or tsc"),
            ("--distance", _) => match value.parse() {
                Ok(distance) if distance >= LEAST_DISTANCE => self.distance = Some(distance),
                _ => return expected("expected a number of instructions, 16 at least"),
            },
            ("--crates", _) => {
                let names = value.split(',').map(|name| name.trim().replace('-', "_"));
                self.crates = names.filter(|name| !name.is_empty()).collect();
                self.crates.sort();
                self.crates.dedup();
                if self.crates.is_empty() {
                    return expected("expected names of crates, as in --crates a,b");
                }
            }
            _ => self.report = Some(PathBuf::from(value)),
        }
        Ok(())
    }

    /// The first value of an option of cargo's, where it is given.
    pub(crate) fn value_of(&self, option: &str) -> Option<OsString> {
        self.values_of(option).into_iter().next()
    }

    /// The values of an option of cargo's that may be given again and again.
    pub(crate) fn values_of(&self, option: &str) -> Vec<OsString> {
        let mut own = self.cargo.iter().take_while(|argument| *argument != "--");
        let mut values = Vec::new();
        while let Some(argument) = own.next() {
            let text = argument.to_str().unwrap_or_default();
            if text == option {
                values.extend(own.next().cloned());
            } else if with_value(text, option) {
                values.push(text[option.len() + 1..].into());
            }
        }
        values
    }

    /// Whether a flag of cargo's is given.
    pub(crate) fn has(&self, flag: &str) -> bool {
        let mut own = self.cargo.iter().take_while(|argument| *argument != "--");
        own.any(|argument| argument == flag)
    }

    /// The environment variables that configure the wrapper and the pass. Creates the directory for reports.
    pub(crate) fn environment(&self) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let distance = self.distance.map(|distance| distance.to_string());
        let report = self.report.as_deref().map(absolute).transpose()?;
        Ok(vec![
            ("HEADWAY_PROBE", self.probe.name().into()),
            (
                "HEADWAY_PROBE_DISTANCE",
                distance.unwrap_or_default().into(),
            ),
            ("HEADWAY_CRATES", self.crates.join(",").into()),
            ("HEADWAY_REPORT", report.unwrap_or_default()),
        ])
    }
}

/// The directory's absolute path: cargo calls rustc in directories of its own.
fn absolute(report: &Path) -> Result<OsString, Failure> {
    let failed = |error| {
        let place = report.display();
        Failure::Usage(format!(
            "--report: '{place}' cannot be a directory: {error}"
        ))
    };
    fs::create_dir_all(report).map_err(failed)?;
    let place = env::current_dir().map_err(failed)?.join(report);
    Ok(place.into_os_string())
}

fn with_value(text: &str, option: &str) -> bool {
    text.strip_prefix(option)
        .is_some_and(|rest| rest.starts_with('='))
}

/// Accepts only commands whose result depends on the pass.
fn known(word: &str) -> Result<(), Failure> {
    if COMMANDS.contains(&word) {
        return Ok(());
    }
    if word.starts_with('-') {
        return Err(Failure::Usage(format!(
            "{word}: no option of cargo headway's; cargo's own stand behind the command"
        )));
    }
    let spelt_out = COMMANDS.iter().filter(|command| command.len() > 1);
    let near = hint(word, spelt_out);
    let expected = COMMANDS.join(", ");
    Err(Failure::Usage(format!(
        "'{word}' is none of the commands {expected}{near}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<CargoAction, Failure> {
        CargoRequest::parse(words.split_whitespace().map(OsString::from), |_| None)
    }

    fn request(words: &str) -> CargoRequest {
        match parse(words) {
            Ok(CargoAction::Run(request)) => request,
            other => panic!("{words}: {other:?}"),
        }
    }

    fn refusal(words: &str) -> String {
        match parse(words) {
            Err(Failure::Usage(text)) => text,
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn options_of_ours_are_taken_out_wherever_they_stand() {
        let request = request(
            "headway --probe tsc build --release --distance=2000 -p x --crates b-b,a --report out --bin x",
        );
        assert_eq!(
            request,
            CargoRequest {
                probe: ProbeSource::Tsc,
                distance: Some(2000),
                crates: vec!["a".into(), "b_b".into()],
                report: Some("out".into()),
                cargo: ["build", "--release", "-p", "x", "--bin", "x"]
                    .map(OsString::from)
                    .into(),
            }
        );
    }

    #[test]
    fn what_is_behind_two_dashes_is_the_programs() {
        let request = request("run -- --probe bell --distance");
        assert_eq!(
            request.cargo,
            ["run", "--", "--probe", "bell", "--distance"]
        );
        assert_eq!(request.probe, ProbeSource::Flag);
        assert!(!request.has("--distance") && request.value_of("--probe").is_none());
    }

    #[test]
    fn help_in_front_is_ours_and_behind_the_command_cargos() {
        assert_eq!(parse("headway --help").unwrap(), CargoAction::Help);
        assert_eq!(parse("-V").unwrap(), CargoAction::Version);
        assert_eq!(request("build --help").cargo, ["build", "--help"]);
    }

    #[test]
    fn what_cannot_be_is_named_with_what_can() {
        for (words, said) in [
            ("", "no command"),
            ("headway", "no command"),
            ("biuld", "did you mean 'build'?"),
            ("publish", "'publish' is none of the commands build, run"),
            ("--release build", "cargo's own stand behind the command"),
            ("build --probe", "--probe: it takes a value"),
            (
                "build --probe bell",
                "--probe: 'bell': expected flag or tsc",
            ),
            ("build --distance 15", "16 at least"),
            ("build --distance -1", "16 at least"),
            ("build --crates ,", "names of crates"),
        ] {
            let text = refusal(words);
            assert!(text.contains(said), "{words}: {text}");
        }
    }

    #[test]
    fn the_environment_is_the_default() {
        let of = |words: &str, name: &str, value: &str| {
            let words = words.split_whitespace().map(OsString::from);
            CargoRequest::parse(words, |asked| (asked == name).then(|| value.to_owned()))
        };
        let tsc = of("build", "HEADWAY_PROBE", "tsc").unwrap();
        assert!(matches!(
            tsc,
            CargoAction::Run(CargoRequest {
                probe: ProbeSource::Tsc,
                ..
            })
        ));
        let flag = of("build --probe flag", "HEADWAY_PROBE", "tsc").unwrap();
        assert!(matches!(
            flag,
            CargoAction::Run(CargoRequest {
                probe: ProbeSource::Flag,
                ..
            })
        ));
        let Err(Failure::Usage(text)) = of("build", "HEADWAY_PROBE_DISTANCE", "far") else {
            panic!("it is accepted");
        };
        assert!(text.starts_with("HEADWAY_PROBE_DISTANCE: 'far'"), "{text}");
        let report = of("build", "HEADWAY_REPORT", "out").unwrap();
        assert!(matches!(
            report,
            CargoAction::Run(CargoRequest {
                report: Some(place),
                ..
            }) if place == Path::new("out")
        ));
    }

    #[test]
    fn no_probes_at_all_are_plain_cargos() {
        let off = |words: &str| {
            let words = words.split_whitespace().map(OsString::from);
            CargoRequest::parse(words, |asked| {
                (asked == "HEADWAY_PROBES").then(|| "off".to_owned())
            })
        };
        assert_eq!(off("--help").unwrap(), CargoAction::Help);
        let Err(Failure::Usage(text)) = off("build") else {
            panic!("it is accepted");
        };
        assert!(text.contains("plain cargo"), "{text}");
    }

    #[test]
    fn cargos_own_options_are_read_but_left() {
        let request = request("test --manifest-path a/Cargo.toml --target-dir=b --locked");
        assert_eq!(request.value_of("--manifest-path").unwrap(), "a/Cargo.toml");
        assert_eq!(request.value_of("--target-dir").unwrap(), "b");
        assert!(request.has("--locked") && !request.has("--offline"));
        assert_eq!(request.cargo.len(), 5);
        let request = self::request("test --config a=1 --locked --config=b=2 -- --config c=3");
        assert_eq!(request.values_of("--config"), ["a=1", "b=2"]);
    }
}
