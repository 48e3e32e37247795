//! "Did you mean …?"

/// Below this Jaro–Winkler similarity a suggestion would only confuse.
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
            (strsim::jaro_winkler(&given, &folded), candidate)
        })
        .filter(|(similarity, _)| *similarity >= LEAST_SIMILARITY)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

/// `; did you mean `x`?`, or nothing.
pub(crate) fn suggestion(nearest: Option<&str>) -> String {
    nearest.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}
