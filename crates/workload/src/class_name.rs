//! What a class may not be called.

use crate::error::Problem;

/// What the row of all classes together is called, in tables and CSV.
const OVERALL: &str = "overall";

/// Refuses a class whose figures nobody could tell from those of all classes.
pub(crate) fn not_reserved(name: &str) -> Result<(), Problem> {
    if name != OVERALL {
        return Ok(());
    }
    Err(Problem::ReservedClass { name: name.into() })
}
