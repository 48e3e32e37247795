// With the runtime in a shared library that is bound lazily, the first probe taken is the first call of
// its function: what the loader does to find it must not cost the code around the probe a register.
#include "headway_probes.h"

#include <stdio.h>

uint64_t probes_taken(void); // resolve_runtime.c

// More values than there are registers, all alive at the probe on the way round.
__attribute__((noinline)) static uint64_t mix(uint64_t seed) {
    uint64_t a = seed, b = a + 1, c = b * 3, d = c + 5, e = d * 7, f = e + 11, g = f * 13, h = g + 17, i = h * 19, j = i + 23,
             k = j * 29, l = k + 31;
    double p = 1, q = 2, r = 3, s = 4, t = 5, u = 6, v = 7, w = 8;
    do {
        a += b ^ l; b ^= c << 1; c += d ^ a; d ^= e >> 3; e += f ^ b; f ^= g << 2;
        g += h ^ c; h ^= i >> 5; i += j ^ d; j ^= k << 3; k += l ^ e; l = l * 5 + 1;
        p = p * 0.5 + q; q = q * 0.25 + r; r = r * 0.5 + s; s = s * 0.25 + t;
        t = t * 0.5 + u; u = u * 0.25 + v; v = v * 0.5 + w; w = w * 0.25 + p;
    } while ((l & 0xff) != 0x5a);
    const double sum = p + q + r + s + t + u + v + w;
    return a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j ^ k ^ l ^ (uint64_t)(sum * 1e6);
}

HEADWAY_NO_PROBES int main(void) {
    __headway_self.countdown = INT64_MAX; // code for executables brings the words along, and the runtime's own beginning is not theirs
    volatile uint64_t seed = 42; // so that it is computed twice
    const uint64_t undisturbed = mix(seed);
    if (probes_taken() != 0) return printf("a probe was taken that nobody asked for\n"), 1;
    __headway_preempt.asked = 1;
    __headway_self.countdown = 0;
    const uint64_t once = mix(seed);
    const uint64_t taken = probes_taken();
    printf("%llu probe taken, %s\n", (unsigned long long)taken, once == undisturbed ? "the same result" : "another result");
    return taken != 1 || once != undisturbed;
}
