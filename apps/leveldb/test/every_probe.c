/* Says how many probes the program took, when it ends. */
#include <stdint.h>
#include <stdio.h>

/* Counted by all threads without a lock, so some are lost: a lower bound. */
uint64_t probes_taken;

__attribute__((destructor)) static void tell(void) {
    fprintf(stderr, "probes taken: %llu\n", (unsigned long long)probes_taken);
}
