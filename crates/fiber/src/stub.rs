//! The functions that probes call. A probe is no call to the compiler that placed it, so they leave every register as it was, but `r11` and
//! the flags.
//!
//! Vector registers are saved by what the processor has, and of that only what is in use: wider state costs up to 2 KiB of writing, and writing
//! zeros back to unused upper halves would slow down code that mixes SSE in on some processors. Of AVX-512, `XGETBV` with 1 tells; of
//! AVX, whether any upper half holds a bit, which takes a third of that instruction's time. `x87` and tile registers are not saved; compilers
//! treat them as lost in every call.
#![expect(unsafe_code, reason = "functions without a compiler's prologue")]

use std::arch::naked_asm;
use std::sync::atomic::AtomicU32;

use crate::abi::{
    __headway_preempt, __headway_self, ASKED_OFFSET, COUNTDOWN, COUNTDOWN_OFFSET, DEADLINE_OFFSET,
    LEFT_OFFSET, LOOK_TICKS, LOOKED_OFFSET, MESSAGE_OFFSET, MOST_SKIPPED, NEXT_READ_OFFSET,
    SKIPPED_OFFSET,
};
use crate::slow;

/// Which components of `XCR0` beyond SSE this machine may have in use: [`AVX`], [`AVX512`]; with [`KNOWN`] once that was found out, and [`TELLS`].
static VECTORS: AtomicU32 = AtomicU32::new(0);

/// Not 0 even with neither AVX nor AVX-512.
const KNOWN: u32 = 1;
/// Upper halves of `ymm0` to `ymm15`.
const AVX: u32 = 1 << 2;
/// Mask registers, upper halves of `zmm0` to `zmm15`, `zmm16` to `zmm31`.
const AVX512: u32 = 0b111 << 5;
/// `XGETBV` with 1 tells which are in use.
const TELLS: u32 = 1 << 31;

/// A flag probe found `asked` not 0: yields if the request is for what runs now.
///
/// # Safety
/// Called with a stack that has a page left.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __headway_preempted() {
    naked_asm!(
        ".cfi_startproc",
        "mov r11, qword ptr [rip + {preempt}@gottpoff]",
        "cmp qword ptr fs:[r11 + {asked}], -1",
        "jne 2f",
        // Self-timed, the frequent case: every probe comes here, and mostly it is too early. Where probes follow each other closely, only
        // some of them look.
        "mov r11, qword ptr [rip + {own}@gottpoff]",
        "sub word ptr fs:[r11 + {left}], 1",
        "jbe 3f", // 1 of 1, or 0: a new deadline
        "ret",
        "3:",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "cmp rax, qword ptr fs:[r11 + {deadline}]",
        "jae 6f",
        // How long the last interval took, and so how many the next one has.
        "mov edx, eax",
        "sub edx, dword ptr fs:[r11 + {looked}]",
        "mov dword ptr fs:[r11 + {looked}], eax",
        "movzx eax, word ptr fs:[r11 + {skipped}]",
        "cmp edx, {look_ticks}",
        "jae 4f",
        "cmp edx, {look_ticks} / 2",
        "jae 5f",
        "lea eax, [rax + rax + 1]",
        "and eax, {most}",
        "jmp 5f",
        "4:",
        "shr eax, 1",
        "5:",
        "mov word ptr fs:[r11 + {skipped}], ax",
        "inc eax",
        "mov word ptr fs:[r11 + {left}], ax",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "ret",
        ".cfi_adjust_cfa_offset 16",
        "6:",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "2:",
        "lea r11, [rip + {slow}]",
        "jmp {call}",
        ".cfi_endproc",
        preempt = sym __headway_preempt,
        own = sym __headway_self,
        asked = const ASKED_OFFSET,
        deadline = const DEADLINE_OFFSET,
        left = const LEFT_OFFSET,
        looked = const LOOKED_OFFSET,
        skipped = const SKIPPED_OFFSET,
        look_ticks = const LOOK_TICKS,
        most = const MOST_SKIPPED,
        slow = sym slow::preempted,
        call = sym call_preserving,
    );
}

/// A TSC probe's countdown ran out: sets it anew, and yields if the deadline has passed.
///
/// # Safety
/// Called with a stack that has a page left.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __headway_tick() {
    naked_asm!(
        ".cfi_startproc",
        "push rax",
        ".cfi_adjust_cfa_offset 8",
        "push rdx",
        ".cfi_adjust_cfa_offset 8",
        "rdtsc",
        "shl rdx, 32",
        "or rax, rdx",
        "mov r11, qword ptr [rip + {own}@gottpoff]",
        "mov qword ptr fs:[r11 + {countdown}], {again}",
        "cmp rax, qword ptr fs:[r11 + {deadline}]",
        "pop rdx",
        ".cfi_adjust_cfa_offset -8",
        "pop rax",
        ".cfi_adjust_cfa_offset -8",
        "jae 2f",
        "ret",
        "2:",
        "lea r11, [rip + {slow}]",
        "jmp {call}",
        ".cfi_endproc",
        own = sym __headway_self,
        countdown = const COUNTDOWN_OFFSET,
        again = const COUNTDOWN,
        deadline = const DEADLINE_OFFSET,
        slow = sym slow::late,
        call = sym call_preserving,
    );
}

/// Moves 16 vector registers of one width to the stack or back.
macro_rules! sixteen {
    (save $mov:literal $reg:literal $bytes:literal) => {
        concat!(
            ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n",
            $mov,
            " [rsp + ",
            $bytes,
            " * \\i], ",
            $reg,
            "\\i\n",
            ".endr"
        )
    };
    (restore $mov:literal $reg:literal $bytes:literal) => {
        concat!(
            ".irp i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15\n",
            $mov,
            " ",
            $reg,
            "\\i, [rsp + ",
            $bytes,
            " * \\i]\n",
            ".endr"
        )
    };
}

/// Calls the function in `r11`, which takes and returns nothing, and keeps what a call may lose: general registers below, vector
/// registers in one of three ways. Entered by a jump from a stub, so its caller is the probe.
#[unsafe(naked)]
unsafe extern "C-unwind" fn call_preserving() {
    naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "push rax",
        ".cfi_offset rax, -24",
        "push rcx",
        ".cfi_offset rcx, -32",
        "push rdx",
        ".cfi_offset rdx, -40",
        "push rsi",
        ".cfi_offset rsi, -48",
        "push rdi",
        ".cfi_offset rdi, -56",
        "push r8",
        ".cfi_offset r8, -64",
        "push r9",
        ".cfi_offset r9, -72",
        "push r10",
        ".cfi_offset r10, -80",
        // What the thread does after the switch begins with a word of another core's, mostly, unless it came along with the request: it comes
        // over during all this.
        "mov r10, qword ptr [rip + {preempt}@gottpoff]",
        "cmp qword ptr fs:[r10 + {message}], 0",
        "jne 2f",
        "mov r10, qword ptr [rip + {own}@gottpoff]",
        "mov r10, qword ptr fs:[r10 + {next_read}]",
        "prefetcht0 [r10]",
        "2:",
        "mov r10d, dword ptr [rip + {vectors}]",
        "test r10d, r10d",
        "jz 7f",
        // Which are there, in r10d; of AVX-512, whether it is in use.
        "2:",
        "test r10d, {avx512}",
        "jz 3f",
        "mov eax, -1",
        "test r10d, r10d",
        "jns 9f", // the sign is TELLS
        "mov ecx, 1",
        "xgetbv",
        "9:",
        "test eax, {avx512}",
        "jnz 5f",
        "3:",
        "test r10d, {avx}",
        "jnz 4f",
        // SSE
        "sub rsp, 16 * 16",
        "and rsp, -64",
        sixteen!(save "movaps" "xmm" "16"),
        "call r11",
        sixteen!(restore "movaps" "xmm" "16"),
        "jmp 6f",
        // AVX
        "4:",
        "sub rsp, 16 * 32 + 64",
        "and rsp, -64",
        sixteen!(save "vmovaps" "ymm" "32"),
        // All bits of all upper halves.
        ".irp i, 1,2,3\nvorps ymm0, ymm0, ymm\\i\n.endr",
        ".irp i, 5,6,7\nvorps ymm4, ymm4, ymm\\i\n.endr",
        ".irp i, 9,10,11\nvorps ymm8, ymm8, ymm\\i\n.endr",
        ".irp i, 13,14,15\nvorps ymm12, ymm12, ymm\\i\n.endr",
        "vorps ymm0, ymm0, ymm4",
        "vorps ymm8, ymm8, ymm12",
        "vorps ymm0, ymm0, ymm8",
        "vextractf128 xmm0, ymm0, 1",
        "vptest xmm0, xmm0",
        "setnz byte ptr [rsp + 16 * 32]",
        "vzeroupper",
        "call r11",
        "cmp byte ptr [rsp + 16 * 32], 0",
        "jne 9f",
        sixteen!(restore "vmovaps" "xmm" "32"), // the upper halves become zero
        "jmp 6f",
        "9:",
        sixteen!(restore "vmovaps" "ymm" "32"),
        "jmp 6f",
        // AVX-512, with the 64-bit masks of AVX-512BW (all but Xeon Phi).
        "5:",
        "sub rsp, 32 * 64 + 64",
        "and rsp, -64",
        sixteen!(save "vmovaps" "zmm" "64"),
        ".irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\nvmovaps [rsp + 64 * \\i], zmm\\i\n.endr",
        ".irp i, 0,1,2,3,4,5,6,7\nkmovq [rsp + 32 * 64 + 8 * \\i], k\\i\n.endr",
        "vzeroupper",
        "call r11",
        sixteen!(restore "vmovaps" "zmm" "64"),
        ".irp i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31\nvmovaps zmm\\i, [rsp + 64 * \\i]\n.endr",
        ".irp i, 0,1,2,3,4,5,6,7\nkmovq k\\i, [rsp + 32 * 64 + 8 * \\i]\n.endr",
        "6:",
        "lea rsp, [rbp - 64]",
        "pop r10",
        "pop r9",
        "pop r8",
        "pop rdi",
        "pop rsi",
        "pop rdx",
        "pop rcx",
        "pop rax",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        // Find out, once in the process (or by several threads at once, with the same result). CPUID: Intel SDM volume 2A.
        "7:",
        ".cfi_def_cfa rbp, 16",
        "push rbx",
        "mov r10d, {known}",
        "mov eax, 1",
        "cpuid",
        "bt ecx, 27", // OSXSAVE
        "jnc 8f",
        "xor ecx, ecx",
        "xgetbv",
        "and eax, {avx} | {avx512}",
        "or r10d, eax",
        "mov eax, 0xd",
        "mov ecx, 1",
        "cpuid",
        "test eax, 4", // XGETBV with 1
        "jz 8f",
        "or r10d, {tells}",
        "8:",
        "mov dword ptr [rip + {vectors}], r10d",
        "pop rbx",
        "jmp 2b",
        ".cfi_endproc",
        preempt = sym __headway_preempt,
        message = const MESSAGE_OFFSET,
        own = sym __headway_self,
        next_read = const NEXT_READ_OFFSET,
        vectors = sym VECTORS,
        known = const KNOWN,
        avx = const AVX,
        avx512 = const AVX512,
        tells = const TELLS,
    );
}
