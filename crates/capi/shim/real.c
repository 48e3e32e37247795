#define _GNU_SOURCE
#include "real.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <unistd.h>

void *headway_real(_Atomic(void *) *kept, const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL) {
        static const char words[] = "headway: the shim finds no function to stand before\n";
        ssize_t ignored = write(STDERR_FILENO, words, sizeof words - 1);
        (void)ignored;
        abort();
    }
    atomic_store_explicit(kept, found, memory_order_relaxed);
    return found;
}
