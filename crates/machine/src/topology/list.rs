//! The kernel's notation for sets of cores.

/// The ids in a list such as `0-3,8`, in its order; empty text is an empty set, anything else that is not
/// a list is `None`.
pub fn parse_cpu_list(text: &str) -> Option<Vec<usize>> {
    let mut ids = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (usize, usize) = (first.parse().ok()?, last.parse().ok()?);
        if first > last {
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
        for text in ["x", "1-", "-1", "3-1", "1-2-3"] {
            assert_eq!(parse_cpu_list(text), None, "{text}");
        }
    }
}
