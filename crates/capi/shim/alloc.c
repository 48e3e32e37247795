/* The allocator is one for all threads and keeps what is a thread's own: a request is not interrupted in it. (The C library's
 * has no probes; one that headway-cc compiled has.) */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>

#include "real.h"
#include "self.h"

#define GUARDED(type, call)                      \
    do {                                         \
        headway_no_preempt_begin();              \
        type result = call;                      \
        headway_no_preempt_end_quietly(HEADWAY_ALLOCATOR); \
        return result;                           \
    } while (0)

/* The dynamic linker itself may allocate while it looks for the allocator: from here, for ever. */
static _Alignas(16) char first[4096];
static atomic_size_t first_used;
static _Thread_local int looking __attribute__((tls_model("initial-exec")));

static void *from_first(size_t size) {
    size_t rounded = (size + 15) & ~(size_t)15;
    size_t at = atomic_fetch_add(&first_used, rounded);
    return at + rounded <= sizeof first ? first + at : NULL;
}

static int is_first(const void *pointer) {
    return (const char *)pointer >= first && (const char *)pointer < first + sizeof first;
}

/* As REAL, for what may be called while it is being looked for. */
#define FOUND(function)                                                              \
    ((__typeof__(&function))({                                                       \
        static _Atomic(void *) kept;                                                 \
        void *found = atomic_load_explicit(&kept, memory_order_relaxed);             \
        if (__builtin_expect(found == NULL, 0) && !looking) {                        \
            looking = 1;                                                             \
            found = headway_real(&kept, #function);                                  \
            looking = 0;                                                             \
        }                                                                            \
        found;                                                                       \
    }))

void *malloc(size_t size) {
    void *(*real)(size_t) = FOUND(malloc);
    if (__builtin_expect(real == NULL, 0)) return from_first(size);
    GUARDED(void *, real(size));
}

void *calloc(size_t count, size_t size) {
    void *(*real)(size_t, size_t) = FOUND(calloc);
    if (__builtin_expect(real == NULL, 0)) return from_first(count * size);
    GUARDED(void *, real(count, size));
}

void *realloc(void *pointer, size_t size) {
    if (__builtin_expect(is_first(pointer), 0)) {
        char *larger = malloc(size);
        size_t most = (size_t)(first + sizeof first - (char *)pointer);
        if (larger != NULL) __builtin_memcpy(larger, pointer, size < most ? size : most);
        return larger;
    }
    GUARDED(void *, REAL(realloc)(pointer, size));
}

void *reallocarray(void *pointer, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) {
        errno = ENOMEM;
        return NULL;
    }
    return realloc(pointer, bytes);
}

void free(void *pointer) {
    if (__builtin_expect(is_first(pointer), 0)) return;
    headway_no_preempt_begin();
    REAL(free)(pointer);
    headway_no_preempt_end_quietly(HEADWAY_ALLOCATOR);
}

int posix_memalign(void **place, size_t alignment, size_t size) {
    GUARDED(int, REAL(posix_memalign)(place, alignment, size));
}

void *aligned_alloc(size_t alignment, size_t size) { GUARDED(void *, REAL(aligned_alloc)(alignment, size)); }

void *memalign(size_t alignment, size_t size) { GUARDED(void *, REAL(memalign)(alignment, size)); }

void *valloc(size_t size) { GUARDED(void *, REAL(valloc)(size)); }

size_t malloc_usable_size(void *pointer) { GUARDED(size_t, REAL(malloc_usable_size)(pointer)); }
