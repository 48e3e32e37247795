/* The tests' own runtime: a probe that is taken calls test_probe_taken() with every register saved. */
        .text
        .globl  __headway_preempted
        .globl  __headway_tick
        .type   __headway_preempted, @function
        .type   __headway_tick, @function
__headway_tick:
__headway_preempted:
        .cfi_startproc
        pushq   %rbp
        .cfi_def_cfa_offset 16
        .cfi_offset %rbp, -16
        movq    %rsp, %rbp
        .cfi_def_cfa_register %rbp
        pushq   %rax
        pushq   %rbx
        pushq   %rcx
        pushq   %rdx
        pushq   %rsi
        pushq   %rdi
        pushq   %r8
        pushq   %r9
        pushq   %r10
        pushq   %r12
        pushq   %r13
        pushq   %r14
        pushq   %r15
        /* All vector state: XSAVE of what the system enabled needs at most 2.7 KiB (AVX-512 included). */
        subq    $4096, %rsp
        andq    $-64, %rsp
        xorl    %eax, %eax
        movq    %rax, 512(%rsp)
        movq    %rax, 520(%rsp)
        movq    %rax, 528(%rsp)
        movq    %rax, 536(%rsp)
        movq    %rax, 544(%rsp)
        movq    %rax, 552(%rsp)
        movq    %rax, 560(%rsp)
        movq    %rax, 568(%rsp)
        movl    $0xe7, %eax
        xorl    %edx, %edx
        xsave   (%rsp)
        cld
        call    test_probe_taken
        movl    $0xe7, %eax
        xorl    %edx, %edx
        xrstor  (%rsp)
        /* What no probe promises to keep is ruined where a test asks for it (the machine has AVX-512 then). */
        movq    test_ruins_avx512@GOTPCREL(%rip), %r11
        cmpl    $0, (%r11)
        je      1f
        .irp    i, 0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15
        vinserti64x4 $1, %ymm\i, %zmm\i, %zmm\i
        .endr
        .irp    i, 16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
        vpternlogd $0xff, %zmm\i, %zmm\i, %zmm\i
        .endr
        .irp    i, 0,1,2,3,4,5,6,7
        kxnorw  %k\i, %k\i, %k\i
        .endr
1:      leaq    -104(%rbp), %rsp
        popq    %r15
        popq    %r14
        popq    %r13
        popq    %r12
        popq    %r10
        popq    %r9
        popq    %r8
        popq    %rdi
        popq    %rsi
        popq    %rdx
        popq    %rcx
        popq    %rbx
        popq    %rax
        popq    %rbp
        .cfi_def_cfa %rsp, 8
        ret
        .cfi_endproc
        .bss
        .globl  test_ruins_avx512
        .type   test_ruins_avx512, @object
        .size   test_ruins_avx512, 4
        .p2align 2
test_ruins_avx512:
        .zero   4

        .section .note.GNU-stack,"",@progbits
