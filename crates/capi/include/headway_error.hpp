/* Failures of the library in C++17, for headway_pool.hpp and headway_threads.hpp. */
#ifndef HEADWAY_ERROR_HPP
#define HEADWAY_ERROR_HPP

#include "headway.h"

#include <stdexcept>

namespace headway {

/* A call of the library failed: its words. */
struct error : std::runtime_error {
    explicit error(int code) : std::runtime_error(headway_last_error()), code(code) {}
    int code;
};

namespace detail {

inline void check(int code) {
    if (code != HEADWAY_OK) throw error(code);
}

} // namespace detail

} // namespace headway

#endif
