//! How a test fails with all the faults that it found.

/// Fails with all faults if there are any.
pub(crate) fn assert_tidy(faults: &[String]) {
    assert!(
        faults.is_empty(),
        "{} to tidy:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
