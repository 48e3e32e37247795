//! A property of every list of cores. `cargo test` checks it on the corpus, and the fuzz target includes this file.

use headway_machine::topology::parse_cpu_list;

/// Any text is a list whose ids read back as written one by one, of a length that no text exceeds, or none.
pub(crate) fn cpu_list(data: &[u8]) {
    const IDS_MAX: usize = 1 << 16;
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let Some(ids) = parse_cpu_list(text) else {
        return;
    };
    assert!(ids.len() <= IDS_MAX && ids.iter().all(|&id| id < IDS_MAX));
    let written: Vec<String> = ids.iter().map(usize::to_string).collect();
    assert_eq!(parse_cpu_list(&written.join(",")), Some(ids));
}
