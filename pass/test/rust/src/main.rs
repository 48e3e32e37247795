//! Loops in Rust that have to yield, among them generic code of the standard library.

use std::collections::{BTreeMap, HashMap};

fn call_free(n: u64) -> u64 {
    (0..n).fold(1, |x, i| x.wrapping_mul(6364136223846793005).wrapping_add(i))
}

fn vectorisable(n: u64) -> u64 {
    let mut a = vec![1.5f32; 1 << 14];
    for _ in 0..n >> 14 {
        a.iter_mut().enumerate().for_each(|(i, x)| *x = *x * 0.5 + i as f32);
    }
    a.iter().sum::<f32>() as u64
}

fn sort(n: u64) -> u64 {
    let mut keys: Vec<u64> = (0..n / 16).map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    keys.sort_unstable();
    keys[keys.len() / 2]
}

fn hash_map(n: u64) -> u64 {
    let mut map = HashMap::new();
    for i in 0..n / 16 {
        *map.entry(i % 10_007).or_insert(0u64) += i;
    }
    map.values().fold(0, |x, y| x ^ y)
}

fn btree_map(n: u64) -> u64 {
    let map: BTreeMap<u64, u64> = (0..2000).map(|i| (i * 7919 % 2003, i)).collect();
    (0..n / 16).filter_map(|i| map.get(&(i % 2003))).sum()
}

fn fibonacci(n: u64) -> u64 {
    if n < 2 { n } else { fibonacci(n - 1) + fibonacci(n - 2) }
}

fn recursive(n: u64) -> u64 {
    (0..n / 20_000).map(|i| fibonacci(20 + (i & 1))).sum()
}

fn main() {
    let loops: [(&str, fn(u64) -> u64); 6] = [
        ("call_free", call_free),
        ("vectorisable", vectorisable),
        ("sort", sort),
        ("hash_map", hash_map),
        ("btree_map", btree_map),
        ("recursive", recursive),
    ];
    // Without probes nothing may yield: that run is the control.
    let probes = std::env::args().nth(1).as_deref() != Some("--without-probes");
    let mut wrong = false;
    for (name, work) in loops {
        // On a busy machine nobody asks for a while: then longer.
        let watched = (22..30).map(|size| plain::watch(work, 1 << size)).find(|(due, _)| *due > 3);
        let (due, fired) = watched.unwrap_or_default();
        let good = due > 3 && if probes { fired * 2 >= due } else { fired == 0 };
        println!("{name:<13} fired {fired:5} of {due:5} due{}", if good { "" } else { "  <-- WRONG" });
        wrong |= !good;
    }
    std::process::exit(wrong.into());
}
