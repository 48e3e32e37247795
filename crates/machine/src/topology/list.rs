//! The kernel's notation for sets of cores.

/// The largest id of a list, and the most ids: several times what Linux has.
const IDS_MAX: usize = 1 << 16;

/// The ids in a list such as `0-3,8`, in its order; empty text is an empty set, anything else that is not
/// a list, or names more than 65 536 ids, is `None`.
pub fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut ids = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last >= IDS_MAX || ids.len() + (last - first) >= IDS_MAX {
            return None;
        }
        ids.extend(first..=last);
    }
    Some(ids)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_ranges_and_the_empty_set() {
        assert_eq!(parse_cpu_list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(parse_cpu_list("5"), Some(vec![5]));
        assert_eq!(parse_cpu_list("\n"), Some(vec![]));
    }

    #[test]
    fn nonsense_is_refused() {
        let (most, twice) = ("0-18446744073709551615", "0-40000,0-40000");
        for text in ["x", "1-", "-1", "3-1", "1-2-3", most, twice, "65536"] {
            assert_eq!(parse_cpu_list(text), None, "{text}");
        }
    }
}
