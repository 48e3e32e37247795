//! Durations as people write them: `100ns`, `0.5us`, `20ms`, `3s`, `2min`, and as programs do: `1.5e+06us`.

use thiserror::Error;

/// Units and their length in nanoseconds. Both code points for µ are accepted.
const UNITS: [(&str, u64); 10] = [
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("μs", 1_000),
    ("ms", 1_000_000),
    ("s", 1_000_000_000),
    ("min", 60_000_000_000),
    ("usec", 1_000),
    ("msec", 1_000_000),
    ("sec", 1_000_000_000),
];
/// The largest exponent of ten that can matter, either way.
const EXPONENT_MAX: i32 = 60;

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
    let (number, unit) = text.split_at(end + exponent_len(&text[end..]));
    (number, unit.trim())
}

/// The length of the exponent that a text begins with, `e+06`; 0 where it has none.
fn exponent_len(text: &str) -> usize {
    let Some(signed) = text.strip_prefix(['e', 'E']) else {
        return 0;
    };
    let unsigned = signed.strip_prefix(['+', '-']).unwrap_or(signed);
    let digits = unsigned.bytes().take_while(u8::is_ascii_digit).count();
    match digits {
        0 => 0,
        _ => text.len() - unsigned.len() + digits,
    }
}

/// Whether a text is a decimal number other than zero, whatever its unit.
pub(crate) fn is_positive(text: &str) -> bool {
    let (number, _) = split(text);
    let mantissa = number.split(['e', 'E']).next().unwrap_or_default();
    mantissa.bytes().any(|byte| matches!(byte, b'1'..=b'9'))
}

fn parse_parts(text: &str, number: &str, unit: &str) -> Result<u64, DurationParseError> {
    let (mantissa, _) = number.split_once(['e', 'E']).unwrap_or((number, ""));
    if !is_decimal(mantissa) {
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
    if let Some((mantissa, exponent)) = number.split_once(['e', 'E']) {
        return scale(&without_exponent(mantissa, exponent)?, unit_ns);
    }
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

/// The same number as a plain decimal: the point moves by `exponent` places.
fn without_exponent(mantissa: &str, exponent: &str) -> Option<String> {
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().any(|digit| digit != b'0') {
        return Some(mantissa.to_owned());
    }
    let down = exponent.starts_with('-');
    let exponent: i32 = match exponent.trim_start_matches(['+', '-']).parse::<i32>() {
        Ok(exponent) if exponent <= EXPONENT_MAX => exponent,
        _ if down => return Some("0".to_owned()),
        _ => return None,
    };
    let places = usize::try_from(exponent).ok()?;
    let zeros = "0".repeat(places);
    Some(if down {
        let padded = format!("{zeros}{digits}");
        let point = padded.len() - fraction.len() - places;
        format!("{}.{}", &padded[..point], &padded[point..])
    } else {
        let padded = format!("{digits}{zeros}");
        let point = whole.len() + places;
        let (whole, fraction) = padded.split_at(point.min(padded.len()));
        let whole = whole.trim_start_matches('0');
        format!("{whole}.{fraction}")
    })
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
        for (text, ns) in [
            ("1.5e+06", 1_500_000_000),
            ("1.5E6us", 1_500_000_000),
            ("2.5e-1 s", 250_000_000),
            ("123.456e1ns", 1_235),
            ("0.001e3ns", 1),
            ("1e-05", 0),
            ("1e-999999999999", 0),
            ("0e99", 0),
            ("0.0 sec", 0),
            ("3 msec", 3_000_000),
        ] {
            assert_eq!(parse_or_us(text), Ok(ns), "{text}");
        }
        assert!(is_positive("1e-05") && !is_positive("0.000") && !is_positive("0e5"));
        assert!(matches!(
            parse("1e99s"),
            Err(DurationParseError::TooLong(_))
        ));
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
