/* An allocator that stands before others: the C library's by another name. */
#include <stddef.h>

void *__libc_malloc(size_t size);

/* A program's own allocator may be compiled with probes: then this has some. */
unsigned long allocations;

void *malloc(size_t size) {
    void *volatile block = __libc_malloc(size);
    allocations++;
    return block;
}
