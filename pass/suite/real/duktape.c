// Runs a script in a new heap of Duktape.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "real.h"
#include "script.h"

#include <duktape.h>

const unsigned kernel_passes = 1;

static char script[sizeof SCRIPT + 32], result[1 << 16];

// Duktape seeds its hashes with the address of its heap, the first thing that it allocates. That one lies at the same address in every
// process, so that every process executes the same.
enum { HEAP_BYTES = 1 << 16 };
static char *const HEAP_ADDRESS = (char *)0x100000000000;
static bool heap_allocated;

static void *allocate(void *user, duk_size_t size) {
    (void)user;
    if (heap_allocated) return malloc(size);
    heap_allocated = true;
    return HEAP_ADDRESS;
}

static void *reallocate(void *user, void *memory, duk_size_t size) {
    (void)user;
    return realloc(memory, size);
}

static void release(void *user, void *memory) {
    (void)user;
    if (memory != HEAP_ADDRESS) free(memory);
}

void kernel_setup(bool full) {
    make_script(script, full ? 2500 : 400);
    void *page = mmap(HEAP_ADDRESS, HEAP_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page != HEAP_ADDRESS) real_fail("memory at a fixed address");
}

void kernel_run(void) {
    heap_allocated = false;
    duk_context *context = duk_create_heap(allocate, reallocate, release, NULL, NULL);
    if (context == NULL || duk_peval_string(context, script) != 0) real_fail("the script");
    snprintf(result, sizeof result, "%s", duk_get_string(context, -1));
    duk_destroy_heap(context);
}

uint64_t kernel_digest(void) { return suite_mix_bytes(0, result, strlen(result)); }

bool kernel_valid(void) { return strncmp(result, RESULT_BEGINS, sizeof RESULT_BEGINS - 1) == 0; }
