//! Calls of the kernel's own functions. The compiler cannot name them as our loader needs it, so that a program calls a helper that no kernel has, by a number
//! that stands for the function.

/// In the byte of its registers, a call of a function of the kernel by its number in the kernel's BTF.
const KERNEL_FUNCTION: u8 = 2 << 4;
/// The operation of every call.
const CALL: u8 = 0x85;
/// `r0 = 0`.
const NO_CALL: [u8; 8] = [0xb7, 0, 0, 0, 0, 0, 0, 0];

/// The object with calls of a function of the kernel, by its number in the kernel's BTF, in the place of all calls of the helper `stand_in`. Without a function
/// they become the value 0.
#[must_use]
pub fn with_kernel_calls(object: &[u8], stand_in: u32, function: Option<u32>) -> Vec<u8> {
    let [a, b, c, d] = stand_in.to_le_bytes();
    let call = [CALL, 0, 0, 0, a, b, c, d];
    let instruction = function.map_or(NO_CALL, |number| {
        let [a, b, c, d] = number.to_le_bytes();
        [CALL, KERNEL_FUNCTION, 0, 0, a, b, c, d]
    });
    let mut object = object.to_vec();
    let mut from = 0;
    while let Some(at) = position(&object[from..], &call) {
        let at = from + at;
        object[at..at + call.len()].copy_from_slice(&instruction);
        from = at + call.len();
    }
    object
}

fn position(object: &[u8], call: &[u8; 8]) -> Option<usize> {
    object.windows(call.len()).position(|bytes| bytes == call)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_call_is_replaced_and_nothing_else() {
        let stands = [0x85, 0, 0, 0, 4, 3, 2, 1];
        let object = [&[7][..], &stands, &[8], &stands, &[9]].concat();
        let replaced = |by: &[u8]| [&[7][..], by, &[8], by, &[9]].concat();
        let calls = |number, function| with_kernel_calls(&object, number, function);
        assert_eq!(calls(0x0102_0304, None), replaced(&NO_CALL));
        let function = [0x85, 0x20, 0, 0, 0x0d, 0x0c, 0, 0];
        assert_eq!(calls(0x0102_0304, Some(0x0c0d)), replaced(&function));
        assert_eq!(calls(0x0102_0305, Some(1)), object);
    }
}
