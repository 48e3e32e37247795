/* Who calls the shim. Code that the compiler pass put probes into asks for addresses of its thread anew behind a call; code of a
 * library without probes keeps them, and may be amid a change of what belongs to its thread. */
#ifndef HEADWAY_SHIM_CALLERS_H
#define HEADWAY_SHIM_CALLERS_H

/* Notes that objects carry (docs/probes.md, "The contract between probes and the runtime"). */
enum headway_note { HEADWAY_NOTE_PROBES = 1, HEADWAY_NOTE_ALLOCATOR = 2 };

/* Whether the object with the code at this address carries such a note. Takes a microsecond and the dynamic linker's lock. */
__attribute__((visibility("hidden"))) int headway_has_note(const void *code, enum headway_note note);

/* Whether a request may be suspended in a call from this address. Not to be asked but where it would be. */
__attribute__((visibility("hidden"))) int headway_may_suspend(const void *caller);

/* Likewise in a call for a lock, which an allocator could make. */
__attribute__((visibility("hidden"))) int headway_may_suspend_at_lock(const void *caller);

#define CALLER __builtin_return_address(0)

#endif
