// C, compiled as it is: `headway-cc -O2 primes.c -o primes`. Nothing in it knows that it can be
// preempted; linked without the runtime, nobody asks.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t primes_below(size_t limit) {
    char *composite = calloc(limit, 1);
    if (!composite) return 0;
    uint64_t found = 0;
    for (size_t i = 2; i < limit; i++) {
        if (composite[i]) continue;
        found++;
        for (size_t k = i * i; k < limit; k += i) composite[k] = 1;
    }
    free(composite);
    return found;
}

int main(int argc, char **argv) {
    const size_t limit = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000000;
    printf("%llu primes below %zu\n", (unsigned long long)primes_below(limit), limit);
    return 0;
}
