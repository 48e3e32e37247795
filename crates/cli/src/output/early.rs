//! Opens the files that a command's flags name before the command runs: a run of minutes whose result has no place is refused at once.

use super::replace::Output;
use crate::error::usage;
use anyhow::Result;
use clap::ArgMatches;
use std::cell::RefCell;
use std::path::{Path, PathBuf};

/// The flags that name a file for a result, by the names of their fields.
const FLAGS: [(&str, &str); 7] = [
    ("output", "--output"),
    ("record", "--record"),
    ("hlog", "--hlog"),
    ("html", "--html"),
    ("trace_out", "--trace-out"),
    ("fit_out", "--fit-out"),
    ("config_out", "--config-out"),
];

/// A flag, and the file that it names.
pub(crate) struct ResultFile {
    flag: &'static str,
    path: PathBuf,
}

thread_local! {
    static EARLY: RefCell<Vec<(ResultFile, Output)>> = const { RefCell::new(Vec::new()) };
}

/// What was opened early and not written; dropped, it leaves nothing behind.
pub(crate) struct Early(());

impl Drop for Early {
    fn drop(&mut self) {
        EARLY.with_borrow_mut(Vec::clear);
    }
}

/// The files for results that the command line names, those of subcommands too.
pub(crate) fn destinations(matches: &ArgMatches) -> Vec<ResultFile> {
    let mut found = Vec::new();
    let mut level = Some(matches);
    while let Some(matches) = level {
        for (field, flag) in FLAGS {
            if let Ok(Some(path)) = matches.try_get_one::<PathBuf>(field) {
                let path = path.clone();
                found.push(ResultFile { flag, path });
            }
        }
        level = matches.subcommand().map(|(_, matches)| matches);
    }
    found
}

/// Opens them, until the value returned is dropped.
///
/// # Errors
/// A usage error that names the flag of the first that cannot be written.
pub(crate) fn early(destinations: &[ResultFile]) -> Result<Early> {
    let early = Early(());
    for (at, ResultFile { flag, path }) in destinations.iter().enumerate() {
        let same = destinations[..at].iter().find(|other| other.path == *path);
        // Devices and pipes take what several write.
        if let Some(other) = same.filter(|other| other.flag != *flag)
            && (!path.exists() || path.is_file())
        {
            let problem = format!(
                "{} goes to {} too: one would replace the other",
                other.flag,
                path.display()
            );
            return Err(usage(flag, problem));
        }
        let output = Output::create(flag, path)?;
        let destination = ResultFile {
            flag,
            path: path.clone(),
        };
        EARLY.with_borrow_mut(|early| early.push((destination, output)));
    }
    Ok(early)
}

/// The file that was opened early for this flag.
pub(super) fn take(flag: &str, path: &Path) -> Option<Output> {
    EARLY.with_borrow_mut(|early| {
        let at = early
            .iter()
            .position(|(it, _)| it.flag == flag && it.path == path)?;
        Some(early.swap_remove(at).1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Every flag that takes a path is one that is opened early, or one that is read or made otherwise.
    #[test]
    fn every_flag_that_names_a_result_is_known() {
        const OTHERS: [&str; 10] = [
            "config",
            "costs",
            "rack_key",
            "agent_key",
            "ctl",
            "socket",
            "trace",
            "server",
            "data",
            "dir",
        ];
        let known: BTreeSet<&str> = FLAGS
            .iter()
            .map(|(field, _)| *field)
            .chain(OTHERS)
            .collect();
        let mut unknown = BTreeSet::new();
        let mut commands = vec![crate::command_line()];
        while let Some(command) = commands.pop() {
            for argument in command.get_arguments() {
                let names = argument.get_value_names().unwrap_or_default();
                let file = names
                    .iter()
                    .any(|name| matches!(name.as_str(), "FILE" | "PATH"));
                let several = argument
                    .get_num_args()
                    .is_some_and(|count| count.max_values() > 1);
                if file && !several && !known.contains(argument.get_id().as_str()) {
                    unknown.insert(format!("{} {}", command.get_name(), argument.get_id()));
                }
            }
            commands.extend(command.get_subcommands().cloned());
        }
        assert_eq!(unknown, BTreeSet::new());
    }

    #[test]
    fn what_is_opened_early_is_used_once_and_leaves_nothing_if_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        let flag = "--output";
        let destination = || ResultFile {
            flag,
            path: path.clone(),
        };
        let opened = early(&[destination(), destination()]).unwrap();
        assert!(take("--html", &path).is_none());
        assert!(take(flag, &path).is_some());
        drop(opened);
        assert!(take(flag, &path).is_none());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
        let other = ResultFile {
            flag: "--html",
            path: path.clone(),
        };
        let refused = early(&[destination(), other]).err().unwrap().to_string();
        assert!(refused.contains("--html") && refused.contains("--output"));
        let nowhere = folder.path().join("no/result");
        let refused = early(&[ResultFile {
            flag,
            path: nowhere,
        }]);
        assert!(refused.is_err_and(|error| error.to_string().contains(flag)));
    }
}
