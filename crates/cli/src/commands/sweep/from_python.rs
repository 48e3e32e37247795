//! A sweep by the Python package: on threads, processes or a cluster of Ray.

use crate::error::{UsageError, usage};
use crate::interrupt::Interrupt;
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use headway_report::Run;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::Deserialize;
use std::io::Read;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

/// Names the interpreter where the flag does not.
const INTERPRETER: &str = "HEADWAY_PYTHON";
/// The exit status by which the lines of Python tell a mistake, and that they were interrupted.
const MISTAKEN: i32 = 2;
const INTERRUPTED: i32 = 130;
/// Has Python import nothing from the current folder, whose files may be anybody's: Python 3.10 does not know `PYTHONSAFEPATH`.
const APART: &str = "import sys\nsys.path[:] = [place for place in sys.path if place]\n";
/// How often the command looks whether it was interrupted.
const LOOK: Duration = Duration::from_millis(50);

/// Where the Python package runs the points.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum PlaceFlag {
    /// On threads of one process
    Threads,
    /// In processes of this machine
    Processes,
    /// On the cluster of Ray that RAY_ADDRESS names, or on one that begins here
    Ray,
}

impl PlaceFlag {
    /// The name that the package gives it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Threads => "threads",
            Self::Processes => "processes",
            Self::Ray => "ray",
        }
    }
}

/// An argument of `headway.sweep`: its keyword, none of the first two, and its value in Python.
pub(super) type Argument = (Option<&'static str>, String);

/// A text as a literal of Python.
pub(super) fn literal(text: &str) -> String {
    // What JSON escapes, Python reads alike.
    serde_json::Value::from(text).to_string()
}

/// The call in Python.
pub(super) fn call(arguments: &[Argument]) -> String {
    let written = arguments.iter().map(|(keyword, value)| match keyword {
        None => value.clone(),
        Some(keyword) => format!("{}={value}", keyword.replace('-', "_")),
    });
    format!("headway.sweep({})", written.collect::<Vec<_>>().join(", "))
}

/// The interpreter that has the package of this command's version.
pub(super) fn interpreter(given: Option<&PathBuf>) -> Result<PathBuf> {
    let named = given
        .cloned()
        .or_else(|| std::env::var_os(INTERPRETER).map(PathBuf::from));
    let python = named.unwrap_or_else(|| "python3".into());
    let shown = python.display();
    let remedy = format!(
        "`make python` builds it; then name its interpreter, target/python/venv/bin/python, by --python or {INTERPRETER} (docs/python.md)"
    );
    let asked = lines(&python, "import headway\nprint(headway.__version__)\n").output();
    let asked = match asked {
        Ok(asked) => asked,
        Err(error) => {
            let why = format!(
                "the points run by the Python package, and '{shown}' does not start: {error}; {remedy}"
            );
            return Err(usage("--on", why));
        }
    };
    if !asked.status.success() {
        let said = String::from_utf8_lossy(&asked.stderr);
        let why = said.lines().last().unwrap_or("it fails").to_owned();
        let why = format!("'{shown}' lacks the Python package headway ({why}); {remedy}");
        return Err(usage("--on", why));
    }
    let version = String::from_utf8_lossy(&asked.stdout).trim().to_owned();
    let own = env!("CARGO_PKG_VERSION");
    if version != own {
        let why = format!(
            "'{shown}' has the package of version {version}, and this command is of {own}: their figures may differ; {remedy}"
        );
        return Err(usage("--on", why));
    }
    Ok(python)
}

/// Python with these lines.
fn lines(python: &PathBuf, code: &str) -> Command {
    let mut command = Command::new(python);
    command
        .args(["-c", &format!("{APART}{code}")])
        // The processes that it begins heed it, too.
        .env("PYTHONSAFEPATH", "1");
    command
}

/// What the package prints of a sweep.
#[derive(Deserialize)]
struct PrintedSweep {
    runs: Vec<Run>,
    points: Vec<PrintedPoint>,
}

/// Whose the next runs are.
#[derive(Deserialize)]
struct PrintedPoint {
    replications: usize,
}

/// The runs of each point, none of a point that was not done when it was interrupted.
pub(super) fn run(
    python: &PathBuf,
    call: &str,
    interrupt: &Interrupt,
) -> Result<Option<Vec<Vec<Run>>>> {
    let code = format!(
        "import headway\n\
         try:\n    sys.stdout.write({call}.json())\n\
         except headway.HeadwayError as error:\n    sys.stdout.write(str(error))\n    sys.exit({MISTAKEN})\n\
         except headway.points.Interrupted as error:\n    sys.stdout.write(headway.sweeps.json_until(error))\n    sys.exit({INTERRUPTED})\n\
         except KeyboardInterrupt:\n    sys.exit({INTERRUPTED})\n"
    );
    // Apart from the terminal's group: Ctrl-C reaches it once, from here.
    let child = lines(python, &code)
        .stdout(Stdio::piped())
        .process_group(0)
        .spawn()
        .with_context(|| format!("cannot run '{}'", python.display()))?;
    let (status, printed) = wait(child, interrupt)?;
    match status.code() {
        Some(0) => {}
        Some(INTERRUPTED) if interrupt.pressed() && !printed.is_empty() => {}
        Some(MISTAKEN) => return Err(UsageError(format!("--{printed}")).into()),
        _ if interrupt.pressed() => return Ok(None),
        _ => bail!("the sweep in Python failed ({status}); what it said stands above"),
    }
    let printed: PrintedSweep =
        serde_json::from_str(&printed).context("cannot read what the Python package printed")?;
    let mut runs = printed.runs.into_iter();
    let each = printed.points.iter();
    Ok(Some(
        each.map(|point| runs.by_ref().take(point.replications).collect())
            .collect(),
    ))
}

/// Waits for the end, and hands an interrupt on.
fn wait(mut child: Child, interrupt: &Interrupt) -> Result<(ExitStatus, String)> {
    let mut output = child.stdout.take().context("it has no output")?;
    let reader = std::thread::spawn(move || {
        let mut printed = String::new();
        output.read_to_string(&mut printed).map(|_| printed)
    });
    let mut told = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if interrupt.pressed() && !told {
            told = true;
            // It may have ended by itself.
            let _ = kill(Pid::from_raw(child.id() as i32), Signal::SIGINT);
        }
        std::thread::sleep(LOOK);
    };
    let printed = reader.join().expect("reading does not panic")?;
    Ok((status, printed))
}
