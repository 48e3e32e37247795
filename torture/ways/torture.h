/* A way to use what a thread has, once, in a request that is interrupted in the middle of it. WAY(name) { … } defines one; it finds its request's number in `seed`. */
#ifndef TORTURE_H
#define TORTURE_H
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <headway.h>
#include <stddef.h>

#ifdef __cplusplus
#define BY_C extern "C"
#else
#define BY_C
#endif

/* Adds a way to those of the program. */
BY_C void add_way(const char *name, void (*way)(unsigned long seed));
/* Counts what was not as a thread would find it, and says the first few. */
BY_C void was_wrong(const char *place, int line, const char *what);

#define EXPECT(condition) ((condition) ? (void)0 : was_wrong(__FILE__, __LINE__, #condition))

#define WAY(name) \
    static void name(unsigned long seed); \
    __attribute__((constructor)) static void add_##name(void) { add_way(#name, name); } \
    static void name(__attribute__((unused)) unsigned long seed)

/* A microsecond, with probes in it: those of the compiler pass, and eight by hand. */
static inline unsigned long work(unsigned long seed) {
    for (int part = 0; part < 8; part++) {
        for (int i = 0; i < 60; i++) seed = seed * 6364136223846793005u + (unsigned long)i;
        headway_checkpoint();
    }
    return seed;
}

/* Counts how many are inside: a critical section. */
struct inside {
    int now, most;
};

/* Stays inside for a while, beside `most` others at most. */
#define VISIT(section, limit) \
    do { \
        EXPECT(__atomic_add_fetch(&(section).now, 1, __ATOMIC_SEQ_CST) <= (limit)); \
        work(1); \
        __atomic_sub_fetch(&(section).now, 1, __ATOMIC_SEQ_CST); \
    } while (0)

#endif
