//! The functions that probes call.
//!
//! A probe of the compiler pass is a call that costs the surrounding code no register. So the slow path preserves all registers except `r11`,
//! the flags, and those that LLVM's `preserve_all` excludes: parts of `zmm` registers beyond `ymm0` to `ymm15`, masks, `x87`, tiles. Code with
//! such a value across a probe saves the value itself. Saving them in the slow path would take 2 KiB each time, since the C library's string
//! functions leave them in use. The compiler treats a probe placed by hand as an ordinary call, so no vector register is saved there.
//!
//! The slow path does not restore empty upper halves of `ymm`: that would slow down code that also uses SSE on some processors.
#![expect(unsafe_code, reason = "functions without a compiler's prologue")]

use std::arch::naked_asm;
use std::sync::atomic::AtomicU32;

use crate::abi::words::{
    __headway_preempt, __headway_self, __headway_worker, ASKED_OFFSET, COUNTDOWN, COUNTDOWN_OFFSET,
    DEADLINE_OFFSET, LEFT_OFFSET, LOOK_TICKS, LOOKED_OFFSET, LOOKS_SHIFT, MESSAGE_OFFSET,
    MET_OFFSET, MOST_COUNTDOWNS, MOST_LOOK_TICKS, MOST_SKIPPED, SKIPPED_OFFSET, WORKER_OFFSET,
};
use crate::present_line::NEXT_READ_AT;
use crate::slow;

/// Whether this machine has `ymm` registers: [`KNOWN`] after the first test, and [`AVX`].
static VECTORS: AtomicU32 = AtomicU32::new(0);

/// Not 0 even without AVX.
const KNOWN: u32 = 1;
/// Upper halves of `ymm0` to `ymm15`, as in `XCR0`.
const AVX: u32 = 1 << 2;

/// Begins to fetch the word that the worker reads first after the switch. Another core has mostly written it, so it arrives during the switch.
/// Changes `r10`.
macro_rules! fetch_next_read {
    () => {
        "mov r10, qword ptr [rip + {preempt}@gottpoff]
        cmp qword ptr fs:[r10 + {message}], 0
        jne 2f
        mov r10, qword ptr [rip + {workers}@gottpoff]
        mov r10, qword ptr fs:[r10 + {worker}]
        test r10, r10
        jz 2f
        mov r10, qword ptr [r10 + {next_read}]
        prefetcht0 [r10]
        2:"
    };
}

/// The interval until the next reading of the clock: in `eax`, 1, 2, 4, … times the shortest. It is to take a share of the time that is left, so that
/// readings come closer as the deadline does. Whether the last interval took longer decides. Takes the reading's low half in `eax`, the ticks
/// that are left in `rdx`, and the thread's line in `r11`. Changes `rdx`.
macro_rules! length_of_next_interval {
    () => {
        "push rcx
        .cfi_adjust_cfa_offset 8
        shr rdx, {looks_shift}
        mov ecx, {look_ticks}
        cmp rdx, rcx
        jbe 8f
        mov ecx, {most_look_ticks}
        cmp rdx, rcx
        jae 8f
        mov ecx, edx
        8:
        mov edx, eax
        sub edx, dword ptr fs:[r11 + {looked}]
        mov dword ptr fs:[r11 + {looked}], eax
        movzx eax, word ptr fs:[r11 + {skipped}]
        cmp edx, ecx
        jae 4f
        shr ecx, 1
        cmp edx, ecx
        jae 5f
        lea eax, [rax + rax + 1]
        and eax, {most}
        jmp 5f
        4:
        shr eax, 1
        shr edx, 2
        cmp edx, ecx
        jb 5f
        xor eax, eax // other code: much fewer probes
        5:
        mov word ptr fs:[r11 + {skipped}], ax
        inc eax
        pop rcx
        .cfi_adjust_cfa_offset -8"
    };
}

/// A function for a flag probe that found `asked` not 0. A self-timed thread calls it at every probe, mostly before its deadline, and then it
/// returns. (Where probes follow each other closely, only some of them read the clock.) Otherwise it goes to `then` with only `r11` changed.
macro_rules! unless_early {
    (then [$($then:expr),*] $(, $operand:ident = $kind:ident $value:expr)*) => {
        naked_asm!(
            ".cfi_startproc
            mov r11, qword ptr [rip + {preempt}@gottpoff]
            cmp qword ptr fs:[r11 + {asked}], -1
            jne 2f
            mov r11, qword ptr [rip + {own}@gottpoff]
            sub word ptr fs:[r11 + {left}], 1
            jbe 3f // 1 of 1, or 0: a new deadline
            ret
            3:
            push rax
            .cfi_adjust_cfa_offset 8
            push rdx
            .cfi_adjust_cfa_offset 8
            rdtsc
            shl rdx, 32
            or rax, rdx
            mov rdx, qword ptr fs:[r11 + {deadline}]
            sub rdx, rax
            jbe 6f",
            length_of_next_interval!(),
            "mov word ptr fs:[r11 + {left}], ax
            pop rdx
            .cfi_adjust_cfa_offset -8
            pop rax
            .cfi_adjust_cfa_offset -8
            ret
            .cfi_adjust_cfa_offset 16
            6:
            mov rdx, qword ptr [rip + {preempt}@gottpoff]
            mov qword ptr fs:[rdx + {met}], rax
            pop rdx
            .cfi_adjust_cfa_offset -8
            pop rax
            .cfi_adjust_cfa_offset -8
            2:",
            $($then,)*
            ".cfi_endproc",
            preempt = sym __headway_preempt,
            own = sym __headway_self,
            asked = const ASKED_OFFSET,
            deadline = const DEADLINE_OFFSET,
            left = const LEFT_OFFSET,
            looked = const LOOKED_OFFSET,
            skipped = const SKIPPED_OFFSET,
            look_ticks = const LOOK_TICKS,
            most_look_ticks = const MOST_LOOK_TICKS,
            looks_shift = const LOOKS_SHIFT,
            most = const MOST_SKIPPED,
            met = const MET_OFFSET,
            slow = sym slow::preempted,
            $($operand = $kind $value,)*
        )
    };
}

/// A flag probe found `asked` not 0: yields if the request is for the current assignment.
///
/// # Safety
/// Called with a stack that has a page left.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __headway_preempted() {
    unless_early!(then ["lea r11, [rip + {slow}]", "jmp {call}"], call = sym call_preserving)
}

/// As [`__headway_preempted`], with the ordinary calling convention, for probes placed by hand.
///
/// # Safety
/// Called with a stack that has a page left.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __headway_checkpoint() {
    unless_early!(then [fetch_next_read!(), "jmp {slow}"], message = const MESSAGE_OFFSET,
        workers = sym __headway_worker, worker = const WORKER_OFFSET, next_read = const NEXT_READ_AT)
}

/// A TSC probe's countdown ran out: sets it anew, and yields if the deadline has passed. A probe subtracts the most that may have passed, so where
/// much less did the next countdown is longer.
///
/// # Safety
/// Called with a stack that has a page left.
#[unsafe(no_mangle)]
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn __headway_tick() {
    naked_asm!(
        ".cfi_startproc
        push rax
        .cfi_adjust_cfa_offset 8
        push rdx
        .cfi_adjust_cfa_offset 8
        rdtsc
        shl rdx, 32
        or rax, rdx
        mov r11, qword ptr [rip + {own}@gottpoff]
        mov rdx, qword ptr fs:[r11 + {deadline}]
        sub rdx, rax
        jbe 2f",
        length_of_next_interval!(),
        "imul eax, eax, {shortest}
        mov qword ptr fs:[r11 + {countdown}], rax
        pop rdx
        .cfi_adjust_cfa_offset -8
        pop rax
        .cfi_adjust_cfa_offset -8
        ret
        .cfi_adjust_cfa_offset 16
        2:
        mov qword ptr fs:[r11 + {countdown}], {shortest}
        mov rdx, qword ptr [rip + {preempt}@gottpoff]
        mov qword ptr fs:[rdx + {met}], rax
        pop rdx
        .cfi_adjust_cfa_offset -8
        pop rax
        .cfi_adjust_cfa_offset -8
        lea r11, [rip + {slow}]
        jmp {call}
        .cfi_endproc",
        preempt = sym __headway_preempt,
        own = sym __headway_self,
        countdown = const COUNTDOWN_OFFSET,
        shortest = const COUNTDOWN,
        deadline = const DEADLINE_OFFSET,
        looked = const LOOKED_OFFSET,
        skipped = const SKIPPED_OFFSET,
        look_ticks = const LOOK_TICKS,
        most_look_ticks = const MOST_LOOK_TICKS,
        looks_shift = const LOOKS_SHIFT,
        most = const MOST_COUNTDOWNS,
        met = const MET_OFFSET,
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

/// Calls the function in `r11`, which takes and returns nothing, and saves the registers that a call may change: general registers below,
/// vector registers in one of two ways. A stub jumps here, so the probe is its caller.
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
        fetch_next_read!(),
        "mov r10d, dword ptr [rip + {vectors}]",
        "test r10d, r10d",
        "jz 7f",
        "2:",
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
        // Test the processor, once in the process (or by several threads at once, with the same result). CPUID: Intel SDM volume 2A.
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
        "and eax, {avx}",
        "or r10d, eax",
        "8:",
        "mov dword ptr [rip + {vectors}], r10d",
        "pop rbx",
        "jmp 2b",
        ".cfi_endproc",
        preempt = sym __headway_preempt,
        message = const MESSAGE_OFFSET,
        workers = sym __headway_worker,
        worker = const WORKER_OFFSET,
        next_read = const NEXT_READ_AT,
        vectors = sym VECTORS,
        known = const KNOWN,
        avx = const AVX,
    );
}
