//! Hints to the processor to load memory that is needed soon.
#![cfg_attr(
    target_arch = "x86_64",
    expect(
        unsafe_code,
        reason = "the instruction is reached through an unsafe function"
    )
)]

/// The bytes that a processor loads at once.
const LINE_BYTES: usize = 64;

/// Begins to load a value into the caches, all of its lines at the same time, where the processor has an instruction for that. A value whose fields are used
/// one after the other would otherwise be waited for line by line.
#[inline]
pub fn prefetch<T>(value: &T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        let begin = std::ptr::from_ref(value).cast::<i8>();
        for at in (0..size_of::<T>()).step_by(LINE_BYTES) {
            // SAFETY: the instruction reads nothing that the program sees, and faults at no address; this one is within `value`.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(begin.add(at)) };
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (value, LINE_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_of_any_size_stays_as_it_is() {
        let values = ((), 7_u8, [9_u64; 100]);
        prefetch(&values.0);
        prefetch(&values.1);
        prefetch(&values);
        assert_eq!(values, ((), 7, [9; 100]));
    }
}
