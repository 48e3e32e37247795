/* A library with probes in its constructor, which the loader calls under its lock. */
#include "torture.h"

int library_constructed;

__attribute__((constructor)) static void construct(void) {
    work(1);
    library_constructed++;
}

__attribute__((destructor)) static void destruct(void) { work(1); }
