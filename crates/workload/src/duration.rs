//! Durations as people write them: `100ns`, `0.5us`, `20ms`, `3s`, `2min`.

use thiserror::Error;

/// Units and their length in nanoseconds. Both code points for µ are accepted.
const UNITS: [(&str, u64); 7] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
];

/// Why a text is not a duration.
#[derive(Clone, PartialEq, Eq, Error)]
pub enum DurationParseError {
    /// The text does not start with a plain decimal number.
    #[error("`{0}` is not a duration; write a number and a unit, such as `5us`")]
    Number(String),
    /// The number has no unit, so it could mean anything.
    #[error("`{0}` has no unit; write ns, us, ms, s or min, such as `{0}us`")]
    MissingUnit(String),
    /// The unit is unknown.
    #[error("`{text}` has the unknown unit `{unit}`; use ns, us, ms, s or min")]
    UnknownUnit {
        /// The whole text.
        text: String,
        /// The part after the number.
        unit: String,
    },
    /// The duration does not fit in 64 bits of nanoseconds (584 years).
    #[error("`{0}` is longer than 584 years, the longest duration that can be held")]
    TooLong(String),
}

headway_words::debug_is_display!(DurationParseError);

/// Reads a duration such as `0.5us` into nanoseconds, rounded to the nearest (halves up).
///
/// The decimal is read exactly, without a detour through floating point. Spaces around the number
/// and the unit are allowed. The unit is required, except that `0` is a duration by itself.
///
/// # Errors
/// [`DurationParseError`] when the text is not a decimal number with a unit, or does not fit in a `u64`.
///
/// ```
/// use headway_workload::duration;
/// assert_eq!(duration::parse("0.5us"), Ok(500));
/// assert!(duration::parse("5").unwrap_err().to_string().contains("no unit"));
/// ```
pub fn parse(text: &str) -> Result<u64, DurationParseError> {
    let (number, unit) = split(text);
    match unit {
        "" if number == "0" => Ok(0),
        "" if scale(number, 1).is_some() => Err(DurationParseError::MissingUnit(number.to_owned())),
        _ => parse_parts(text, number, unit),
    }
}

/// Like [`parse`], but a number without a unit is microseconds, as in trace files.
///
/// # Errors
/// [`DurationParseError`] as for [`parse`], except that a missing unit is no error.
pub fn parse_or_us(text: &str) -> Result<u64, DurationParseError> {
    let (number, unit) = split(text);
    parse_parts(text, number, if unit.is_empty() { "us" } else { unit })
}

/// Writes a duration in the largest unit that keeps the number at 1 or above, exactly:
/// `parse(&format(ns)) == Ok(ns)` for every `ns`.
///
/// ```
/// assert_eq!(headway_workload::duration::format(1_500), "1.5us");
/// ```
#[must_use]
pub fn format(ns: u64) -> String {
    let (unit, unit_ns, digits) = match ns {
        0..1_000 => return format!("{ns}ns"),
        1_000..1_000_000 => ("us", 1_000, 3),
        1_000_000..1_000_000_000 => ("ms", 1_000_000, 6),
        _ => ("s", 1_000_000_000, 9),
    };
    let decimal = format!("{}.{:0digits$}", ns / unit_ns, ns % unit_ns);
    format!(
        "{}{unit}",
        decimal.trim_end_matches('0').trim_end_matches('.')
    )
}

fn split(text: &str) -> (&str, &str) {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    (number, unit.trim())
}

fn parse_parts(text: &str, number: &str, unit: &str) -> Result<u64, DurationParseError> {
    if !is_decimal(number) {
        return Err(DurationParseError::Number(text.trim().to_owned()));
    }
    let Some((_, unit_ns)) = UNITS.iter().find(|(name, _)| *name == unit) else {
        return Err(DurationParseError::UnknownUnit {
            text: text.trim().to_owned(),
            unit: unit.to_owned(),
        });
    };
    scale(number, *unit_ns).ok_or_else(|| DurationParseError::TooLong(text.trim().to_owned()))
}

fn is_decimal(number: &str) -> bool {
    number.bytes().any(|byte| byte.is_ascii_digit()) && number.matches('.').count() <= 1
}

/// `number · unit_ns`, rounded half up; `None` when `number` is no decimal or the product does not fit.
/// Digits beyond the eighteenth decimal place cannot change the result and are ignored.
fn scale(number: &str, unit_ns: u64) -> Option<u64> {
    if !is_decimal(number) {
        return None;
    }
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let fraction = &fraction[..fraction.len().min(18)];
    let denominator = 10_u128.pow(fraction.len() as u32);
    let numerator: u128 = if fraction.is_empty() {
        0
    } else {
        fraction.parse().ok()?
    };
    let part = (numerator * u128::from(unit_ns) * 2 + denominator) / (2 * denominator);
    whole
        .checked_mul(unit_ns)?
        .checked_add(u64::try_from(part).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn reads_every_unit_exactly() {
        let cases = [
            ("100ns", 100),
            ("0.5us", 500),
            ("5.7us", 5_700),
            ("2.5 µs", 2_500),
            ("20ms", 20_000_000),
            ("3s", 3_000_000_000),
            (" 2min ", 120_000_000_000),
            ("0", 0),
            (".5us", 500),
            ("0.4ns", 0),
            ("0.5ns", 1),
            ("18446744073709551615ns", u64::MAX),
        ];
        for (text, ns) in cases {
            assert_eq!(parse(text), Ok(ns), "{text}");
        }
        assert_eq!(parse_or_us("1.5"), Ok(1_500));
        assert_eq!(parse_or_us("1.5ms"), Ok(1_500_000));
    }

    #[test]
    fn refuses_with_the_reason_and_the_remedy() {
        let cases = [
            (
                "5",
                "`5` has no unit; write ns, us, ms, s or min, such as `5us`",
            ),
            (
                "fast",
                "`fast` is not a duration; write a number and a unit, such as `5us`",
            ),
            (
                "",
                "`` is not a duration; write a number and a unit, such as `5us`",
            ),
            (
                "-5us",
                "`-5us` is not a duration; write a number and a unit, such as `5us`",
            ),
            (
                "1.2.3us",
                "`1.2.3us` is not a duration; write a number and a unit, such as `5us`",
            ),
            (
                "5 parsecs",
                "`5 parsecs` has the unknown unit `parsecs`; use ns, us, ms, s or min",
            ),
            (
                "18446744073709551616ns",
                "`18446744073709551616ns` is longer than 584 years, the longest duration that can be held",
            ),
        ];
        for (text, message) in cases {
            assert_eq!(parse(text).unwrap_err().to_string(), message);
        }
    }

    proptest! {
        #[test]
        fn format_is_exact(ns: u64) {
            prop_assert_eq!(parse(&format(ns)), Ok(ns));
        }

        #[test]
        fn parse_never_panics(text in "\\PC*") {
            let _ = parse(&text);
            let _ = parse_or_us(&text);
        }
    }
}
