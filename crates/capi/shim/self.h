/* What the shim asks of the thread it runs in, by the contract between probes and the runtime (crates/fiber/src/abi/words.rs). */
#ifndef HEADWAY_SHIM_SELF_H
#define HEADWAY_SHIM_SELF_H

#include <stdint.h>

#include "../include/headway_preempt.h"

/* Read anew each time, since a request goes on in another thread after it has yielded. */
static inline __attribute__((always_inline)) void *headway_fiber(void) {
    void *fiber;
    __asm__ volatile("movq " HEADWAY_SELF_WORDS ", %0\n\tmovq %%fs:24(%0), %0" : "=r"(fiber));
    return fiber;
}

/* How many sections are open: a lock that is held is one. */
static inline __attribute__((always_inline)) uint32_t headway_sections(void) {
    uintptr_t sections;
    __asm__ volatile("movq " HEADWAY_SELF_WORDS ", %0\n\tmovl %%fs:8(%0), %k0" : "=r"(sections)::"memory");
    return (uint32_t)sections;
}

void __headway_deferred_in_library(void);

/* Ends a section without yielding here: whoever calls may hold what the shim does not know of, such as a stream of the C
 * library's. If it was the last one, and a request to yield came meanwhile, that is made anew, for the next probe. (One that came by signal could
 * have met the caller itself, and is granted.) */
static inline __attribute__((always_inline)) void headway_no_preempt_end_quietly(void) {
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
    __headway_deferred_in_library();
}

/* Lets others run, errno as it was. Returns at once where a request cannot yield. */
static inline void headway_step_aside(void) { __headway_deferred(); }

#endif
