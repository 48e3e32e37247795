//! The reasons to refuse an application.

use headway_policy::host::ShapeError;

/// Why an application is not admitted.
#[derive(PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// It does not fit beside the others.
    #[error("{0}; ask for less, or end another application first")]
    Shape(ShapeError),
    /// There are as many applications as the daemon has room for.
    #[error("there are {0} applications already, the most that this daemon takes")]
    Full(usize),
    /// Its memory claims an impossible number of grants.
    #[error("its memory says that it was granted a core {0} times")]
    Grants(u64),
    /// It cannot get packets.
    #[error("{0}")]
    Network(String),
}

headway_words::debug_is_display!(AdmissionError);
