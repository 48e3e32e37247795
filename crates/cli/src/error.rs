//! Errors for users: the mistake, its place, and the correction.

pub(crate) use headway::config::explain;
use headway_load::LoadError;
use headway_policy::spec::SpecError;
use headway_sim::SimError;
use headway_study::{Mistake, StudyError};
use headway_words::escaped;
pub(crate) use headway_words::{hint, nearest};

/// A mistake in the user's input: exit status 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct UsageError(pub(crate) String);

/// A usage error about what stands at a place: a flag, or a key in a line of a file.
pub(crate) fn usage(place: &str, message: impl std::fmt::Display) -> anyhow::Error {
    UsageError(format!("{place}: {message}")).into()
}

/// Whether the error is a mistake of the user, who can correct it.
pub(crate) fn is_usage(error: &anyhow::Error) -> bool {
    error.downcast_ref::<UsageError>().is_some()
        || error.downcast_ref::<Mistake>().is_some()
        || error.downcast_ref::<StudyError>().is_some()
        || error.downcast_ref::<headway_workload::Error>().is_some()
        || error.downcast_ref::<SpecError>().is_some()
        || error.downcast_ref::<SimError>().is_some()
        || error.downcast_ref::<headway_report::SloError>().is_some()
        || error.downcast_ref::<headway_plan::PlanError>().is_some()
        || error.downcast_ref().is_some_and(is_wrong_load)
}

/// Whether the load that was asked for cannot be offered, whatever the machine.
fn is_wrong_load(error: &LoadError) -> bool {
    !matches!(error, LoadError::Socket { .. })
}

/// Whether standard output was closed by its reader (`headway … | head`): not an error.
pub(crate) fn is_closed_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .any(|cause: &(dyn std::error::Error + 'static)| {
            cause
                .downcast_ref::<std::io::Error>()
                .is_some_and(|error| error.kind() == std::io::ErrorKind::BrokenPipe)
        })
}

/// The error and its causes in one line, fit for a terminal: what stands in it may be a stranger's file.
pub(crate) fn sentence(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let cause = cause.to_string();
        if text.is_empty() {
            text = cause;
        } else if !text.contains(&cause) {
            text = format!("{text}: {cause}");
        }
    }
    let lines: Vec<String> = text.split('\n').map(escaped).collect();
    lines.join("\n")
}
