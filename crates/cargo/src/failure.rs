//! Why the command fails.

/// A message for the caller; further lines are one hint each.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The command line is wrong: exit status 2.
    Usage(String),
    /// The work failed: exit status 1.
    Impossible(String),
}
