/* What a probe calls when there is no runtime: nobody can take over, so the request is taken back and the
 * program goes on. Only r11 and the flags change, no vector register is touched. */

        /* Between two looks at the clock, in weighted instructions: never reached again for long. */
        .set    COUNTDOWN_OFFSET, 16
        .set    COUNTDOWN_LONG, 0x7fffffff

        .text
        .weak   __headway_preempted
        .weak   __headway_checkpoint
        .type   __headway_preempted, @function
        .type   __headway_checkpoint, @function
        .p2align 4
__headway_preempted:
__headway_checkpoint:
        .cfi_startproc
        endbr64
        movq    __headway_preempt@gottpoff(%rip), %r11
        movq    $0, %fs:(%r11)
        ret
        .cfi_endproc
        .size   __headway_preempted, .-__headway_preempted
        .size   __headway_checkpoint, .-__headway_checkpoint

        .weak   __headway_tick
        .type   __headway_tick, @function
        .p2align 4
__headway_tick:
        .cfi_startproc
        endbr64
        movq    __headway_self@gottpoff(%rip), %r11
        movq    $COUNTDOWN_LONG, %fs:COUNTDOWN_OFFSET(%r11)
        ret
        .cfi_endproc
        .size   __headway_tick, .-__headway_tick

        .section .note.GNU-stack,"",@progbits
