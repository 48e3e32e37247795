/* Linked before libheadway_probes: each thread starts with its flag raised, and nobody takes it back, so that every probe is
 * taken. What a probe may change, r11 and the flags, it does change. */
        .section .tdata,"awT",@progbits
        .globl  __headway_preempt
        .type   __headway_preempt, @object
        .size   __headway_preempt, 64
        .p2align 6
__headway_preempt:
        .quad   1
        .zero   56

        .text
        .globl  __headway_preempted
        .type   __headway_preempted, @function
        .p2align 4
__headway_preempted:
        .cfi_startproc
        endbr64
        incq    probes_taken(%rip)
        movq    $-1, %r11
        testq   %r11, %r11
        ret
        .cfi_endproc
        .size   __headway_preempted, .-__headway_preempted

        .section .note.GNU-stack,"",@progbits
