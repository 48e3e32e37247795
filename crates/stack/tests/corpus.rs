//! What a fuzzer once found, replayed. A program of its own, as in the other crates.

mod fuzzed;
#[path = "../../../fuzz/replay.rs"]
mod replay;

#[test]
fn tcp_segments() {
    replay::replay("tcp_segments", fuzzed::segments);
}

/// Seeds with bytes changed and parts repeated, which a fuzzer would do for longer.
#[test]
fn tcp_segments_changed_at_random() {
    let folder = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fuzz/corpus/tcp_segments"
    );
    let seeds = std::fs::read_dir(folder).expect("the corpus");
    let seeds = seeds.map(|entry| std::fs::read(entry.expect("a seed").path()).expect("a seed"));
    let mut seeds: Vec<_> = seeds.collect();
    seeds.sort();
    let mut state = 7u64;
    let mut draw = move |below: usize| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 33) as usize % below
    };
    for _ in 0..3000 {
        let mut data = seeds[draw(seeds.len())].clone();
        for _ in 0..1 + draw(6) {
            let at = draw(data.len());
            match draw(3) {
                0 => data[at] = draw(256) as u8,
                1 => data[at] ^= 1 << draw(8),
                _ => {
                    let part = data[..at].to_vec();
                    data.extend(part);
                }
            }
        }
        data.truncate(6000);
        fuzzed::segments(&data);
    }
}
