//! Times of the calendar, as ISO 8601 and RFC 3339 write them: `2023-11-16T18:17:03.97Z`.

const NS_PER_S: u64 = 1_000_000_000;
/// Digits of a fraction of a second that can change the result.
const FRACTION_DIGITS: usize = 9;

/// Whether a text begins like a date of the calendar, so that it is meant as one.
pub(crate) fn is_date(text: &str) -> bool {
    let bytes = text.trim().as_bytes();
    bytes.len() >= 10
        && bytes[..10].iter().enumerate().all(|(at, byte)| match at {
            4 | 7 => *byte == b'-',
            _ => byte.is_ascii_digit(),
        })
}

/// Nanoseconds since 1970, of a date and a time of day with `T` or a space between them. Seconds may have a fraction. An offset follows, `Z`,
/// `UTC`, `+01:00` or `+0100`, or none: then it is taken as UTC. `None` where it is none of this, or before 1970.
pub(crate) fn parse(text: &str) -> Option<u64> {
    let text = text.trim();
    if !is_date(text) {
        return None;
    }
    let (date, rest) = text.split_at(10);
    let rest = rest.strip_prefix(['T', 't', ' '])?.trim_start();
    let (of_day, offset_s) = split_offset(rest)?;
    let mut parts = of_day.splitn(3, ':');
    let hours = number(parts.next()?, 23)?;
    let minutes = number(parts.next()?, 59)?;
    let (seconds, fraction_ns) = seconds(parts.next().unwrap_or("00"))?;
    let day_s = i64::from(hours * 3_600 + minutes * 60 + seconds);
    let since_s = days(date)? * 86_400 + day_s - offset_s;
    let whole = u64::try_from(since_s).ok()?.checked_mul(NS_PER_S)?;
    whole.checked_add(fraction_ns)
}

/// The time of day, and the seconds by which it is ahead of UTC.
fn split_offset(text: &str) -> Option<(&str, i64)> {
    for utc in ["Z", "z", "UTC"] {
        if let Some(of_day) = text.strip_suffix(utc) {
            return Some((of_day.trim_end(), 0));
        }
    }
    let Some(at) = text.find(['+', '-']) else {
        return Some((text, 0));
    };
    let (of_day, offset) = text.split_at(at);
    let ahead = if offset.starts_with('-') { -1 } else { 1 };
    let digits = offset[1..].replace(':', "");
    let (hours, minutes) = match digits.len() {
        2 => (digits.as_str(), "00"),
        4 if digits.is_ascii() => digits.split_at(2),
        _ => return None,
    };
    let offset_s = number(hours, 23)? * 3_600 + number(minutes, 59)? * 60;
    Some((of_day.trim_end(), ahead * i64::from(offset_s)))
}

/// Two digits, at most `most`.
fn number(text: &str, most: u32) -> Option<u32> {
    let digits = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| digits && *number <= most)
}

/// Whole seconds, and their fraction in ns, rounded down. A leap second counts as the next.
fn seconds(text: &str) -> Option<(u32, u64)> {
    let (whole, fraction) = text.split_once(['.', ',']).unwrap_or((text, "0"));
    if fraction.is_empty() || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let digits = &fraction[..fraction.len().min(FRACTION_DIGITS)];
    let scale = 10_u64.pow((FRACTION_DIGITS - digits.len()) as u32);
    Some((number(whole, 60)?, digits.parse::<u64>().ok()? * scale))
}

/// Days since 1970 of `YYYY-MM-DD` (Hinnant, *chrono-compatible low-level date algorithms*).
fn days(date: &str) -> Option<i64> {
    const MONTH_DAYS: [u32; 12] = [31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let year: i64 = date[..4].parse().ok()?;
    let month = number(&date[5..7], 12).filter(|month| *month > 0)?;
    let day = number(&date[8..], MONTH_DAYS[month as usize - 1]).filter(|day| *day > 0)?;
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    if month == 2 && day == 29 && !leap {
        return None;
    }
    // Years begin in March, so that a leap day is the last.
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * i64::from((month + 9) % 12) + 2) / 5 + i64::from(day) - 1;
    Some(era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_the_calendar_are_read_to_the_nanosecond() {
        let noon = 1_700_136_000 * NS_PER_S;
        for (text, ns) in [
            ("1970-01-01 00:00:00", 0),
            ("2023-11-16T12:00:00Z", noon),
            ("2023-11-16 12:00", noon),
            ("2023-11-16 12:00:00.97 UTC", noon + 970_000_000),
            ("2023-11-16T13:00:00,000000001+01:00", noon + 1),
            ("2023-11-16T06:30:00.0000000019-0530", noon + 1),
            ("2024-02-29T00:00:00Z", 1_709_164_800 * NS_PER_S),
        ] {
            assert_eq!(parse(text), Some(ns), "{text}");
        }
    }

    #[test]
    fn what_is_no_time_is_none() {
        for text in [
            "2023-02-29 00:00:00",
            "2023-13-01 00:00:00",
            "2023-11-16",
            "2023-11-16 24:00:00",
            "2023-11-16 1:00:00",
            "2023-11-16 12:00:00.",
            "2023-11-16 12:00:00+1",
            "1969-12-31 23:59:59",
            "yesterday",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
