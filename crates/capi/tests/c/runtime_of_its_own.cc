// A library that was linked with a C++ runtime of its own, which it shows to nobody.
#include "throws.h"

extern "C" void *__cxa_get_globals(void) noexcept;

extern "C" void *library_globals(void) { return __cxa_get_globals(); }

// Returns how much was wrong so far.
extern "C" unsigned long library_round(unsigned long id) {
    one_round(id);
    return wrong;
}
