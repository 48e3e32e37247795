//! "Did you mean …?"

/// Below this similarity a suggestion would only confuse.
const LEAST_SIMILARITY: f64 = 0.65;

/// The candidate most like `given`, ignoring case and `_` for `-`, if any is like it at all.
pub(crate) fn nearest<'a>(
    given: &str,
    candidates: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let given = given.to_lowercase().replace('_', "-");
    candidates
        .into_iter()
        .map(|candidate| {
            let folded = candidate.to_lowercase().replace('_', "-");
            (similarity(&given, &folded), candidate)
        })
        .filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// Jaro–Winkler finds long names by their beginnings, Damerau–Levenshtein short ones with two
/// letters swapped.
fn similarity(a: &str, b: &str) -> f64 {
    strsim::jaro_winkler(a, b).max(strsim::normalized_damerau_levenshtein(a, b))
}

/// `; did you mean `x`?`, or nothing.
pub(crate) fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
