# The two functions that probes call. As the contract demands they preserve every register but r11
# and the flags; those two are overwritten, so that a probe that relies on them is noticed. Vector
# registers survive because the recorder, which these call, uses none.

.macro PROBE name, handler
    .globl  \name
    .type   \name, @function
    .p2align 4
\name:
    .cfi_startproc
    pushq   %rbp
    .cfi_def_cfa_offset 16
    .cfi_offset %rbp, -16
    movq    %rsp, %rbp
    .cfi_def_cfa_register %rbp
    pushq   %rax
    pushq   %rcx
    pushq   %rdx
    pushq   %rsi
    pushq   %rdi
    pushq   %r8
    pushq   %r9
    pushq   %r10
    andq    $-16, %rsp
    movq    8(%rbp), %rdi
    call    \handler
    leaq    -64(%rbp), %rsp
    popq    %r10
    popq    %r9
    popq    %r8
    popq    %rdi
    popq    %rsi
    popq    %rdx
    popq    %rcx
    popq    %rax
    popq    %rbp
    .cfi_def_cfa %rsp, 8
    movq    $-0x5ca1ab1e, %r11
    addq    %r11, %r11
    ret
    .cfi_endproc
    .size   \name, . - \name
.endm

# The beginning of a flag probe's call, as in the runtime (crates/fiber/src/stub.rs). A thread that keeps time itself has its flag up always, and
# before its deadline most calls return at once: only some read the clock.
    .set    DEADLINE, 0
    .set    LOOKED, 56
    .set    LEFT, 60
    .set    SKIPPED, 62
    .set    LOOK_TICKS, 512
    .set    MOST_LOOK_TICKS, 8192
    .set    LOOKS_SHIFT, 4
    .set    MOST_SKIPPED, 63

    .text
    .globl  __headway_preempted
    .type   __headway_preempted, @function
    .p2align 4
__headway_preempted:
    .cfi_startproc
    movq    __headway_preempt@gottpoff(%rip), %r11
    cmpq    $-1, %fs:(%r11)
    jne     preempted
    movq    __headway_self@gottpoff(%rip), %r11
    subw    $1, %fs:LEFT(%r11)
    jbe     3f
    ret
3:  pushq   %rax
    .cfi_adjust_cfa_offset 8
    pushq   %rdx
    .cfi_adjust_cfa_offset 8
    rdtsc
    shlq    $32, %rdx
    orq     %rdx, %rax
    movq    %fs:DEADLINE(%r11), %rdx
    subq    %rax, %rdx
    jbe     6f
    pushq   %rcx
    .cfi_adjust_cfa_offset 8
    shrq    $LOOKS_SHIFT, %rdx
    movl    $LOOK_TICKS, %ecx
    cmpq    %rcx, %rdx
    jbe     7f
    movl    $MOST_LOOK_TICKS, %ecx
    cmpq    %rcx, %rdx
    jae     7f
    movl    %edx, %ecx
7:  movl    %eax, %edx
    subl    %fs:LOOKED(%r11), %edx
    movl    %eax, %fs:LOOKED(%r11)
    movzwl  %fs:SKIPPED(%r11), %eax
    cmpl    %ecx, %edx
    jae     4f
    shrl    $1, %ecx
    cmpl    %ecx, %edx
    jae     5f
    leal    1(%rax, %rax), %eax
    andl    $MOST_SKIPPED, %eax
    jmp     5f
4:  shrl    $1, %eax
    shrl    $2, %edx
    cmpl    %ecx, %edx
    jb      5f
    xorl    %eax, %eax
5:  movw    %ax, %fs:SKIPPED(%r11)
    incl    %eax
    movw    %ax, %fs:LEFT(%r11)
    popq    %rcx
    .cfi_adjust_cfa_offset -8
    popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rax
    .cfi_adjust_cfa_offset -8
    ret
    .cfi_adjust_cfa_offset 16
6:  popq    %rdx
    .cfi_adjust_cfa_offset -8
    popq    %rax
    .cfi_adjust_cfa_offset -8
    jmp     preempted
    .cfi_endproc
    .size   __headway_preempted, . - __headway_preempted

    PROBE preempted, recorder_preempted
    PROBE __headway_tick, recorder_ticked

    .section .note.GNU-stack, "", @progbits
