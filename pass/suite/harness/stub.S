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

    .text
    PROBE __headway_preempted, recorder_preempted
    PROBE __headway_tick, recorder_ticked

    .section .note.GNU-stack, "", @progbits
