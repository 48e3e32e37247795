// Code with AVX-512's registers in use across probes, of which a probe keeps ymm0 to ymm15: the rest is the code's own affair, and it sees to it.
#include "headway_probes.h"

#include <immintrin.h>
#include <stdbool.h>
#include <stdio.h>

enum { WORDS = 1 << 16, SUMS = 24, LANES = 16 };

_Thread_local struct headway_preempt __headway_preempt;
_Thread_local struct headway_self __headway_self;
extern int test_ruins_avx512;
static unsigned long probes;
void test_probe_taken(void) { probes++; }

typedef unsigned lanes __attribute__((vector_size(64)));
static lanes words[WORDS / LANES];

// More sums than there are registers of the old kind, and a mask of which the compiler cannot know a lane.
__attribute__((always_inline)) static inline unsigned digest_of(unsigned picked) {
    lanes sums[SUMS] = {0};
    const __mmask16 mask = (__mmask16)picked;
    for (unsigned i = 0; i + SUMS <= WORDS / LANES; i++)
        for (unsigned s = 0; s < SUMS; s++)
            sums[s] = (lanes)_mm512_mask_add_epi32((__m512i)(sums[s] * 33), mask, (__m512i)sums[s], (__m512i)words[i + s]);
    unsigned digest = 0;
    for (unsigned s = 0; s < SUMS; s++)
        for (unsigned lane = 0; lane < LANES; lane++) digest = digest * 31 + sums[s][lane];
    return digest;
}

// The control: whether a register that nobody keeps is another after a probe's call. (Below the stack's red zone, and by static places only.)
HEADWAY_NO_PROBES static bool changes(void) {
    static lanes after;
    __asm__ volatile("lea -128(%%rsp), %%rsp\n\t"
                     "vmovdqa64 %1, %%zmm20\n\t"
                     "call __headway_preempted\n\t"
                     "vmovdqa64 %%zmm20, %0\n\t"
                     "lea 128(%%rsp), %%rsp"
                     : "=m"(after)
                     : "m"(words[1])
                     : "r11", "cc", "memory", "xmm20");
    bool changed = false;
    for (unsigned lane = 0; lane < LANES; lane++) changed |= after[lane] != words[1][lane];
    return changed;
}

__attribute__((noinline)) static unsigned probed(unsigned picked) { return digest_of(picked); }
HEADWAY_NO_PROBES static unsigned unprobed(unsigned picked) { return digest_of(picked); }

int main(void) {
    if (!__builtin_cpu_supports("avx512bw") || !__builtin_cpu_supports("avx512vl")) {
        puts("SKIPPED: this processor has no AVX-512");
        return 0;
    }
    for (unsigned i = 0; i < WORDS; i++) words[i / LANES][i % LANES] = i * 2654435761u;
    if (changes()) return puts("the control: zmm20 is another though nobody ruined it"), 1;
    test_ruins_avx512 = 1;
    if (!changes()) return puts("the control: zmm20 was kept, the test proves nothing"), 1;
    __headway_preempt.asked = 1;
    const unsigned due = unprobed(0xa5c3), found = probed(0xa5c3);
    printf("%lu probes taken, digest %08x, due %08x\n", probes, found, due);
    return probes > 10 && found == due ? 0 : 1;
}
