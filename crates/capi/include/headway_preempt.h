/* What C code tells the probes around it, without a call: sections that are not to be interrupted, and probes placed by
 * hand. x86-64 Linux. Included by headway.h; by itself for code that links no more than instrumented objects do. */
#ifndef HEADWAY_PREEMPT_H
#define HEADWAY_PREEMPT_H

#ifdef __cplusplus
extern "C" {
#endif

/* Thread-local words of which only assembly may compute the address: a request goes on in another thread after a probe,
 * and a compiler would keep the address of the first. Offsets: the contract with the compiler pass, version 1. */
#define HEADWAY_PREEMPT_WORD "__headway_preempt@gottpoff(%%rip)"
#define HEADWAY_SELF_WORDS "__headway_self@gottpoff(%%rip)"

void __headway_checkpoint(void);
void __headway_deferred(void);

/* From here to headway_no_preempt_end() the request is not interrupted. Sections nest; outside a request they do nothing.
 * Begin and end belong to one request, and nothing in between may wait for another one. */
static inline __attribute__((always_inline)) void headway_no_preempt_begin(void) {
    __asm__ volatile("movq " HEADWAY_SELF_WORDS ", %%rax\n\t"
                     "incl %%fs:8(%%rax)"
                     :
                     :
                     : "rax", "cc", "memory");
}

/* Ends the section. At the end of the outermost one the request yields if it was asked to meanwhile. */
static inline __attribute__((always_inline)) void headway_no_preempt_end(void) {
    __asm__ goto("movq " HEADWAY_SELF_WORDS ", %%rax\n\t"
                 "decl %%fs:8(%%rax)\n\t"
                 "jnz 1f\n\t"
                 "cmpl $0, %%fs:12(%%rax)\n\t"
                 "jne %l[due]\n"
                 "1:"
                 :
                 :
                 : "rax", "cc", "memory"
                 : due);
    return;
due:
    __headway_deferred();
}

/* Says of the object that it has probes: an ELF note, once in each assembly. The shim suspends requests in calls from such objects only. */
#define HEADWAY_NOTE_OF_PROBES                                   \
    ".ifndef .Lheadway_note_of_probes\n\t"                       \
    ".set .Lheadway_note_of_probes, 1\n\t"                       \
    ".pushsection .note.headway,\"a\",@note\n\t"                 \
    ".p2align 2\n\t.long 8, 4, 1\n\t.asciz \"Headway\"\n\t.long 1\n\t" \
    ".popsection\n\t"                                            \
    ".endif\n\t"

/* A probe placed by hand, for code that headway-cc does not compile: yields if the request was asked to. */
static inline __attribute__((always_inline)) void headway_checkpoint(void) {
    __asm__ goto(HEADWAY_NOTE_OF_PROBES
                 "movq " HEADWAY_PREEMPT_WORD ", %%rax\n\t"
                 "cmpq $0, %%fs:0(%%rax)\n\t"
                 "jne %l[asked]"
                 :
                 :
                 : "rax", "cc", "memory"
                 : asked);
    return;
asked:
    __headway_checkpoint();
}

#ifdef __cplusplus
}
#endif

#endif
