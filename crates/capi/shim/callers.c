#define _GNU_SOURCE
#include "callers.h"

#include <dlfcn.h>
#include <link.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

struct search {
    uintptr_t code;
    int objects;       /* seen so far; the first is the program itself */
    int is_program;
    unsigned notes;    /* a bit for each type */
};

static size_t padded(size_t bytes) { return (bytes + 3) & ~(size_t)3; }

/* The types of Headway's notes among these. */
static unsigned notes_in(const char *at, size_t bytes) {
    static const char owner[] = "Headway";
    unsigned found = 0;
    ElfW(Nhdr) note;
    while (bytes >= sizeof note) {
        memcpy(&note, at, sizeof note);
        size_t length = sizeof note + padded(note.n_namesz) + padded(note.n_descsz);
        if (length > bytes) break;
        if (note.n_namesz == sizeof owner && memcmp(at + sizeof note, owner, sizeof owner) == 0 && note.n_type < 32)
            found |= 1u << note.n_type;
        at += length;
        bytes -= length;
    }
    return found;
}

static int holds(const struct dl_phdr_info *object, uintptr_t code) {
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && code - (object->dlpi_addr + part->p_vaddr) < part->p_memsz) return 1;
    }
    return 0;
}

static int visit(struct dl_phdr_info *object, size_t size, void *data) {
    (void)size;
    struct search *search = data;
    search->is_program = search->objects++ == 0;
    if (!holds(object, search->code)) return 0;
    for (int i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &object->dlpi_phdr[i];
        if (part->p_type == PT_NOTE && part->p_align <= 4)
            search->notes |= notes_in((const char *)(object->dlpi_addr + part->p_vaddr), part->p_memsz);
    }
    return 1;
}

/* Looks for the object with the code at this address; whether it is there. */
static int find(struct search *search, const void *code) {
    *search = (struct search){.code = (uintptr_t)code};
    return dl_iterate_phdr(visit, search) != 0;
}

int headway_has_note(const void *code, enum headway_note note) {
    struct search search;
    return find(&search, code) && (search.notes >> note & 1);
}

/* What the program asked of its server. Until it has one: requests may go on anywhere, and are interrupted by probes only. */
static atomic_int stays_at_worker, is_by_signal;

int headway_may_suspend(const void *caller) {
    /* A signal could have met the caller itself. */
    if (atomic_load_explicit(&is_by_signal, memory_order_relaxed)) return 1;
    struct search search;
    if (!find(&search, caller)) return 0;
    if (search.notes >> HEADWAY_NOTE_PROBES & 1) return 1;
    return search.is_program && atomic_load_explicit(&stays_at_worker, memory_order_relaxed);
}

/* The allocator that programs and libraries call if it is another than the shim's, which then does not see their calls; or null. */
static const void *foreign_allocator(void) {
    static _Atomic(const void *) kept;
    const void *first = atomic_load_explicit(&kept, memory_order_relaxed);
    if (first == NULL) {
        first = dlsym(RTLD_DEFAULT, "malloc");
        atomic_store_explicit(&kept, first, memory_order_relaxed);
    }
    Dl_info its, own;
    int is_own = dladdr(first, &its) != 0 && dladdr(&is_by_signal, &own) != 0 && its.dli_fbase == own.dli_fbase;
    return is_own ? NULL : first;
}

int headway_may_suspend_at_lock(const void *caller) {
    /* An allocator that is linked into code of which requests may be suspended cannot be told from that code. */
    const void *allocator = foreign_allocator();
    return (allocator == NULL || !headway_may_suspend(allocator)) && headway_may_suspend(caller);
}

/* Called by headway_start() with what the program asks of its server: whether interrupted requests stay at their worker, and whether they are interrupted
 * by signal. Returns null, or why the shim cannot keep such a server safe. */
const char *__headway_shim_start(int stays, int by_signal) {
    static char why[512];
    const void *allocator = foreign_allocator();
    if (allocator != NULL) {
        Dl_info info;
        const char *where = dladdr(allocator, &info) ? info.dli_fname : "an unknown object";
        const char *what = headway_has_note(allocator, HEADWAY_NOTE_ALLOCATOR) ? "has probes in it" : by_signal ? "can be interrupted by signal" : NULL;
        if (what != NULL) {
            snprintf(why, sizeof why,
                     "the allocator of %s stands before Headway's shim and %s: a request would be interrupted inside it. Let the shim come first: "
                     "LD_PRELOAD=libheadway_shim.so:ALLOCATOR.so, or an allocator linked as a shared library behind -lheadway_shim",
                     where, what);
            return why;
        }
    }
    if (stays) atomic_store(&stays_at_worker, 1);
    if (by_signal) atomic_store(&is_by_signal, 1);
    return NULL;
}
