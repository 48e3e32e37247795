//! Errors as exceptions, with the command's sentences.

use headway_study::{Mistake, StudyError};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::{PyErr, PyResult};
use std::panic::{AssertUnwindSafe, catch_unwind};

pyo3::create_exception!(
    headway,
    HeadwayError,
    PyValueError,
    "A mistake in what was asked, in the command's words; the sentence begins with the argument where it is."
);

/// The exception of a mistake; its place is an argument's name.
pub(crate) fn mistaken(mistake: &Mistake) -> PyErr {
    // `load/--rate` names two flags.
    let place = mistake.place.replace("/--", "/").replace('-', "_");
    HeadwayError::new_err(format!("{place}: {}", mistake.sentence))
}

/// The exception of a mistake at an argument.
pub(crate) fn mistaken_at(place: &str, sentence: impl std::fmt::Display) -> PyErr {
    mistaken(&Mistake::at(place, sentence))
}

/// The exception of a question without an answer.
pub(crate) fn refused(error: impl Into<StudyError>) -> PyErr {
    match error.into() {
        StudyError::Mistake(mistake) => mistaken(&mistake),
        other => HeadwayError::new_err(other.to_string()),
    }
}

/// What may panic, on the caller's thread: a panic becomes an exception.
pub(crate) fn guarded<T>(work: impl FnOnce() -> PyResult<T>) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|payload| Err(panicked(payload.as_ref())))
}

/// The exception of a fault of this package: a panic that did not leave it.
pub(crate) fn panicked(payload: &(dyn std::any::Any + Send)) -> PyErr {
    let text = payload
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| payload.downcast_ref::<&str>().copied());
    let text = text.unwrap_or("no message");
    PyRuntimeError::new_err(format!("headway has a fault, please report it: {text}"))
}
