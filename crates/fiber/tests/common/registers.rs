//! Every register that a probe must leave alone, filled with a pattern around a call of its slow path.

use std::arch::naked_asm;

use headway_fiber::abi::{__headway_preempted, __headway_tick};

use super::Rng;

/// Image of the registers: 32 vector registers of 64 bytes each, 8 mask registers, 14 general ones (all but `rsp` and `r11`).
#[repr(C, align(64))]
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Image {
    vectors: [[u64; 8]; 32],
    masks: [u64; 8],
    general: [u64; 14],
}

/// Which vector registers are filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Width {
    Sse,
    Avx,
    Avx512,
}

impl Width {
    /// Those this machine has.
    pub(crate) fn available() -> Vec<Width> {
        let mut widths = vec![Width::Sse];
        if is_x86_feature_detected!("avx") {
            widths.push(Width::Avx);
        }
        if is_x86_feature_detected!("avx512bw") {
            widths.push(Width::Avx512);
        }
        widths
    }

    /// The registers that a probe's slow path preserves (`preserve_all`): code that uses more across it keeps them itself.
    pub(crate) fn kept_by_probes() -> Vec<Width> {
        let mut widths = Width::available();
        widths.retain(|&width| width != Width::Avx512);
        widths
    }
}

impl Image {
    pub(crate) fn random(rng: &mut Rng, width: Width) -> Box<Image> {
        let mut image = Box::new(Image {
            vectors: [[0; 8]; 32],
            masks: [0; 8],
            general: [0; 14],
        });
        let (registers, words) = match width {
            Width::Sse => (16, 2),
            Width::Avx => (16, 4),
            Width::Avx512 => (32, 8),
        };
        for vector in &mut image.vectors[..registers] {
            vector[..words].fill_with(|| rng.next());
        }
        if width == Width::Avx512 {
            image.masks.fill_with(|| rng.next());
        }
        image.general.fill_with(|| rng.next());
        image
    }

    /// Fills the registers with this, calls the slow path of a probe, and says what is in them then.
    pub(crate) fn across(&self, probe: Probe, width: Width) -> Box<Image> {
        let mut after = Box::new(Image {
            vectors: [[0; 8]; 32],
            masks: [0; 8],
            general: [0; 14],
        });
        let probe: unsafe extern "C-unwind" fn() = match probe {
            Probe::Flag => __headway_preempted,
            Probe::Tsc => __headway_tick,
            Probe::None => nothing,
            Probe::Elsewhere => spin,
        };
        // SAFETY: reads the one image and writes the other; the width is one the machine has.
        unsafe {
            match width {
                Width::Sse => sse(self, &mut *after, probe),
                Width::Avx => avx(self, &mut *after, probe),
                Width::Avx512 => avx512(self, &mut *after, probe),
            }
        }
        after
    }
}

/// Whose slow path is called.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Probe {
    Flag,
    Tsc,
    /// Nobody's: to fill registers with something else.
    None,
    /// Nobody's, for some microseconds: a signal will come.
    Elsewhere,
}

extern "C-unwind" fn nothing() {}

/// Counts down in memory, touching no register.
#[unsafe(naked)]
extern "C-unwind" fn spin() {
    naked_asm!(
        ".cfi_startproc",
        "push 2000",
        ".cfi_adjust_cfa_offset 8",
        "2:",
        "dec qword ptr [rsp]",
        "jnz 2b",
        "add rsp, 8",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_endproc",
    );
}

type Across = unsafe extern "C-unwind" fn();

/// Saves what a function must save, loads the general registers from the image in `rdi`, calls `rdx`, and stores them to the one in `rsi`.
/// The vectors are loaded by `$load` before, with the image in `rdi`, and stored by `$store` after, with the image in `r11`.
macro_rules! across {
    ($name:ident, $load:expr, $store:expr, $end:literal) => {
        #[unsafe(naked)]
        unsafe extern "C" fn $name(before: *const Image, after: *mut Image, probe: Across) {
            naked_asm!(
                ".cfi_startproc",
                "push rbx",
                ".cfi_adjust_cfa_offset 8",
                "push rbp",
                ".cfi_adjust_cfa_offset 8",
                "push r12",
                ".cfi_adjust_cfa_offset 8",
                "push r13",
                ".cfi_adjust_cfa_offset 8",
                "push r14",
                ".cfi_adjust_cfa_offset 8",
                "push r15",
                ".cfi_adjust_cfa_offset 8",
                "push rsi",
                ".cfi_adjust_cfa_offset 8",
                $load,
                "mov r11, rdx",
                "mov rax, [rdi + 2112]",
                "mov rcx, [rdi + 2112 + 8]",
                "mov rdx, [rdi + 2112 + 16]",
                "mov rbx, [rdi + 2112 + 24]",
                "mov rsi, [rdi + 2112 + 32]",
                "mov rbp, [rdi + 2112 + 48]",
                "mov r8, [rdi + 2112 + 56]",
                "mov r9, [rdi + 2112 + 64]",
                "mov r10, [rdi + 2112 + 72]",
                "mov r12, [rdi + 2112 + 80]",
                "mov r13, [rdi + 2112 + 88]",
                "mov r14, [rdi + 2112 + 96]",
                "mov r15, [rdi + 2112 + 104]",
                "mov rdi, [rdi + 2112 + 40]",
                "call r11",
                "mov r11, [rsp]",
                "mov [r11 + 2112], rax",
                "mov [r11 + 2112 + 8], rcx",
                "mov [r11 + 2112 + 16], rdx",
                "mov [r11 + 2112 + 24], rbx",
                "mov [r11 + 2112 + 32], rsi",
                "mov [r11 + 2112 + 40], rdi",
                "mov [r11 + 2112 + 48], rbp",
                "mov [r11 + 2112 + 56], r8",
                "mov [r11 + 2112 + 64], r9",
                "mov [r11 + 2112 + 72], r10",
                "mov [r11 + 2112 + 80], r12",
                "mov [r11 + 2112 + 88], r13",
                "mov [r11 + 2112 + 96], r14",
                "mov [r11 + 2112 + 104], r15",
                $store,
                $end,
                "pop rsi",
                ".cfi_adjust_cfa_offset -8",
                "pop r15",
                ".cfi_adjust_cfa_offset -8",
                "pop r14",
                ".cfi_adjust_cfa_offset -8",
                "pop r13",
                ".cfi_adjust_cfa_offset -8",
                "pop r12",
                ".cfi_adjust_cfa_offset -8",
                "pop rbp",
                ".cfi_adjust_cfa_offset -8",
                "pop rbx",
                ".cfi_adjust_cfa_offset -8",
                "ret",
                ".cfi_endproc",
            );
        }
    };
}

// The offsets that the assembly has.
const _: () = assert!(std::mem::offset_of!(Image, masks) == 2048);
const _: () = assert!(std::mem::offset_of!(Image, general) == 2112);

across!(
    sse,
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovaps xmm\\i, [rdi + 64 * \\i]\n.endr",
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nmovaps [r11 + 64 * \\i], xmm\\i\n.endr",
    ""
);
across!(
    avx,
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovaps ymm\\i, [rdi + 64 * \\i]\n.endr",
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\nvmovaps [r11 + 64 * \\i], ymm\\i\n.endr",
    "vzeroupper"
);
across!(
    avx512,
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\
     vmovaps zmm\\i, [rdi + 64 * \\i]\n.endr\n\
     .irp i, 0,1,2,3,4,5,6,7\nkmovq k\\i, [rdi + 2048 + 8 * \\i]\n.endr",
    ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\n\
     vmovaps [r11 + 64 * \\i], zmm\\i\n.endr\n\
     .irp i, 0,1,2,3,4,5,6,7\nkmovq [r11 + 2048 + 8 * \\i], k\\i\n.endr",
    "vzeroupper"
);
