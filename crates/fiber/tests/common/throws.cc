// Exceptions in flight while a fiber is interrupted, as C++ has them: passing destructors, caught, nested, thrown again.
// A signal may come at any instruction, and the runtime's own code is not for that, so all but the interruptible parts is held.
#include <exception>

namespace {

struct Calls {
    void (*meanwhile)(void *);
    void *with;
    void (*hold)();
    void (*release)();

    void interruptible() const {
        release();
        meanwhile(with);
        hold();
    }
};

struct First {
    unsigned long id;
};

struct Second {
    unsigned long id;
};

// Takes its time while an exception passes.
struct Guard {
    const Calls &calls;
    bool &right;
    ~Guard() {
        right = right && std::uncaught_exceptions() == 1;
        calls.interruptible();
        right = right && std::uncaught_exceptions() == 1;
    }
};

[[noreturn]] __attribute__((noinline)) void fail(const Calls &calls, bool &right, unsigned long id, unsigned depth) {
    if (depth == 0) throw First{id};
    Guard guard{calls, right};
    fail(calls, right, id, depth - 1);
}

void catches_nested(const Calls &calls, bool &right, unsigned long id) {
    try {
        throw Second{~id};
    } catch (const Second &second) {
        const std::exception_ptr held = std::current_exception();
        calls.interruptible();
        right = right && second.id == ~id && std::current_exception() == held;
        try {
            std::rethrow_exception(held);
        } catch (const Second &again) {
            calls.interruptible();
            right = right && &again == &second;
        }
    }
}

bool one_round(const Calls &calls, unsigned long id) {
    bool right = true;
    try {
        fail(calls, right, id, 2);
    } catch (const First &first) {
        calls.interruptible();
        right = right && first.id == id && std::uncaught_exceptions() == 0;
        catches_nested(calls, right, id);
        try {
            throw;
        } catch (const First &again) {
            calls.interruptible();
            right = right && &again == &first && again.id == id;
        }
    }
    return right && std::uncaught_exceptions() == 0 && !std::current_exception();
}

}  // namespace

// Calls `meanwhile` six times, each time with an exception in flight or caught. Whether each was found again.
extern "C" int headway_test_throws(unsigned long id, void (*meanwhile)(void *), void *with, void (*hold)(), void (*release)()) {
    hold();
    const bool right = one_round(Calls{meanwhile, with, hold, release}, id);
    release();
    return right;
}
