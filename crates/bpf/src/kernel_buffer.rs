//! The header by which programs see what the kernel keeps of a packet beside its bytes.

/// The header, by name and text: one of the sources of a program that includes it.
pub const KERNEL_BUFFER: (&str, &str) = ("kernel_buffer.h", include_str!("../bpf/kernel_buffer.h"));

/// What stands in the header for a call of a function of the kernel, and the function's name, for [`with_kernel_calls`](crate::with_kernel_calls).
pub const KERNEL_CONTEXT: (u32, &str) = (0x4b43_4354, "bpf_cast_to_kern_ctx");
