/* A plugin with probes in C++. */
#include "torture.h"

#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct Counts {
    bool *right;
    ~Counts() {
        *right = *right && std::uncaught_exceptions() == 1;
        work(1);
        *right = *right && std::uncaught_exceptions() == 1;
    }
};

}  // namespace

/* The number, by way of an exception and a thread-local object. */
extern "C" __attribute__((visibility("default"))) unsigned long plugin_answer(unsigned long seed) {
    static thread_local std::vector<std::string> own;
    bool right = true;
    own.assign(3, std::to_string(seed) + " as a text of some length");
    try {
        Counts counts{&right};
        work(seed);
        throw std::runtime_error(own[1]);
    } catch (std::exception &error) {
        work(seed);
        return right && own[2] == error.what() ? std::stoul(error.what()) : 0;
    }
}
