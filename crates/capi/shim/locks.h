/* Locks, as the rest of the shim takes them. */
#ifndef HEADWAY_SHIM_LOCKS_H
#define HEADWAY_SHIM_LOCKS_H

#include <pthread.h>

/* pthread_mutex_lock() on behalf of this caller. */
__attribute__((visibility("hidden"))) int headway_lock(pthread_mutex_t *mutex, const void *caller);

#endif
