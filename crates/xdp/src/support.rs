//! A check of this machine for the switch in the kernel.

use crate::compile;
use aya::Ebpf;
use aya::programs::Xdp;

/// The missing prerequisites of an XDP program, each in a sentence with its remedy. Empty when a program compiles and loads.
#[must_use]
pub fn missing() -> Vec<String> {
    let mut missing = headway_bpf::missing();
    match compile() {
        Err(error) => missing.push(error.to_string()),
        Ok(objects) if missing.is_empty() => missing.extend(refusal(&objects.bare)),
        Ok(_) => {}
    }
    missing
}

/// The kernel's error for the smallest program.
fn refusal(bare: &[u8]) -> Option<String> {
    let mut loaded = match Ebpf::load(bare) {
        Ok(loaded) => loaded,
        Err(error) => return Some(format!("the kernel refuses BPF maps: {error}")),
    };
    let program: &mut Xdp = loaded.program_mut("bare")?.try_into().ok()?;
    let refused = program.load().err()?;
    Some(format!("the kernel refuses XDP programs: {refused}"))
}
