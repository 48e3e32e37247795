//! Figures that are not a number, which JSON writes as `null`.

use serde::Deserialize;

/// Reads `null` as NaN.
pub(crate) fn null_as_nan<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}
