//! The keys of a demonstration, by number.

/// Bytes of the keys that `Store::fill` writes.
pub const KEY_BYTES: usize = 16;

/// Key number `i`: `key:` and twelve decimal digits, so keys sort as their numbers do.
///
/// # Panics
/// When `i` has more than twelve digits.
#[must_use]
pub fn key_of(i: u64) -> [u8; KEY_BYTES] {
    assert!(i < 1_000_000_000_000, "key {i} has more than twelve digits");
    let mut key = *b"key:000000000000";
    let mut left = i;
    for digit in key[4..].iter_mut().rev() {
        *digit = b'0' + (left % 10) as u8;
        left /= 10;
    }
    key
}
