/* Threads in user space for C++17: as std::thread, std::mutex and std::condition_variable, over headway_threads.h. See docs/threads.md. */
#ifndef HEADWAY_THREADS_HPP
#define HEADWAY_THREADS_HPP

#include "headway_error.hpp"
#include "headway_threads.h"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <tuple>
#include <type_traits>
#include <utility>

namespace headway {

namespace detail {

template <class Rep, class Period> std::uint64_t ns(std::chrono::duration<Rep, Period> duration) {
    using std::chrono::nanoseconds;
    if (!(duration > duration.zero())) return 0;
    /* More nanoseconds than a number holds are for ever. */
    using exact = std::chrono::duration<long double, std::nano>;
    if (exact(duration) >= exact(nanoseconds::max())) return UINT64_MAX;
    return static_cast<std::uint64_t>(std::chrono::ceil<nanoseconds>(duration).count());
}

} // namespace detail

/* Kernel threads that run threads of the program. Its destructor abandons threads that have not ended. */
class runtime {
  public:
    explicit runtime(std::size_t kthreads = 1, std::size_t stack_bytes = 0)
        : runtime([&] {
              headway_runtime_options options{};
              options.kthreads = kthreads;
              options.stack_bytes = stack_bytes;
              return options;
          }()) {}
    /* With all options; their size is set here. */
    explicit runtime(headway_runtime_options options) {
        options.size = sizeof options;
        detail::check(headway_runtime_start(&options, &handle_));
    }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    ~runtime() { headway_runtime_stop(handle_); }

    /* Runs body() in a thread of the runtime. Returns what it returns, or throws what it throws. */
    template <class Body> std::invoke_result_t<Body &> run(Body &&body) {
        using Result = std::invoke_result_t<Body &>;
        /* No optional holds a reference: its address stands for it. */
        using Kept = std::conditional_t<std::is_reference_v<Result>, std::add_pointer_t<Result>,
                                        std::conditional_t<std::is_void_v<Result>, char, Result>>;
        struct Call {
            std::remove_reference_t<Body> &body;
            std::optional<Kept> result{};
            std::exception_ptr failure{};
        } call{body};
        detail::check(headway_runtime_run(
            handle_,
            [](void *argument) {
                auto &call = *static_cast<Call *>(argument);
                try {
                    if constexpr (std::is_void_v<Result>) {
                        std::invoke(call.body);
                    } else if constexpr (std::is_reference_v<Result>) {
                        Result &&referred = std::invoke(call.body);
                        call.result.emplace(std::addressof(referred));
                    } else {
                        call.result.emplace(std::invoke(call.body));
                    }
                } catch (...) {
                    call.failure = std::current_exception();
                }
            },
            &call));
        if (call.failure) std::rethrow_exception(call.failure);
        if constexpr (std::is_reference_v<Result>) return static_cast<Result>(**call.result);
        else if constexpr (!std::is_void_v<Result>) return std::move(*call.result);
    }

  private:
    headway_runtime *handle_ = nullptr;
};

/* As std::thread, but made by threads of a runtime. */
class thread {
  public:
    thread() noexcept = default;
    template <class Body, class... Arguments, class = std::enable_if_t<!std::is_same_v<std::decay_t<Body>, thread>>>
    explicit thread(Body &&body, Arguments &&...arguments) {
        using Call = std::tuple<std::decay_t<Body>, std::decay_t<Arguments>...>;
        auto call = std::make_unique<Call>(std::forward<Body>(body), std::forward<Arguments>(arguments)...);
        detail::check(headway_spawn(
            &handle_,
            [](void *argument) noexcept -> void * {
                std::unique_ptr<Call> call(static_cast<Call *>(argument));
                std::apply([](auto &&...parts) { std::invoke(std::move(parts)...); }, std::move(*call));
                return nullptr;
            },
            call.get()));
        call.release();
    }
    thread(thread &&other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
    thread &operator=(thread &&other) noexcept {
        if (joinable()) std::terminate();
        handle_ = std::exchange(other.handle_, nullptr);
        return *this;
    }
    ~thread() {
        if (joinable()) std::terminate();
    }

    bool joinable() const noexcept { return handle_ != nullptr; }
    void join() { detail::check(headway_join(std::exchange(handle_, nullptr), nullptr)); }
    void detach() { detail::check(headway_detach(std::exchange(handle_, nullptr))); }

  private:
    headway_thread *handle_ = nullptr;
};

namespace this_thread {

inline void yield() noexcept { headway_thread_yield(); }
template <class Rep, class Period> void sleep_for(std::chrono::duration<Rep, Period> duration) {
    headway_thread_sleep(detail::ns(duration));
}

} // namespace this_thread

/* As std::mutex: for std::lock_guard and std::unique_lock. */
class mutex {
  public:
    mutex() noexcept { headway_mutex_init(&mutex_); }
    mutex(const mutex &) = delete;
    mutex &operator=(const mutex &) = delete;
    void lock() noexcept { headway_mutex_lock(&mutex_); }
    bool try_lock() noexcept { return headway_mutex_try_lock(&mutex_); }
    void unlock() noexcept { headway_mutex_unlock(&mutex_); }
    headway_mutex *native_handle() noexcept { return &mutex_; }

  private:
    headway_mutex mutex_;
};

/* As std::condition_variable. */
class condition_variable {
  public:
    condition_variable() noexcept { headway_condvar_init(&condvar_); }
    condition_variable(const condition_variable &) = delete;
    condition_variable &operator=(const condition_variable &) = delete;
    void notify_one() noexcept { headway_condvar_notify_one(&condvar_); }
    void notify_all() noexcept { headway_condvar_notify_all(&condvar_); }
    void wait(std::unique_lock<mutex> &lock) {
        detail::check(headway_condvar_wait(&condvar_, lock.mutex()->native_handle()));
    }
    template <class Holds> void wait(std::unique_lock<mutex> &lock, Holds holds) {
        while (!holds()) wait(lock);
    }
    template <class Rep, class Period>
    std::cv_status wait_for(std::unique_lock<mutex> &lock, std::chrono::duration<Rep, Period> duration) {
        bool is_over = false;
        detail::check(
            headway_condvar_wait_for(&condvar_, lock.mutex()->native_handle(), detail::ns(duration), &is_over));
        return is_over ? std::cv_status::timeout : std::cv_status::no_timeout;
    }
    template <class Rep, class Period, class Holds>
    bool wait_for(std::unique_lock<mutex> &lock, std::chrono::duration<Rep, Period> duration, Holds holds) {
        using clock = std::chrono::steady_clock;
        auto now = clock::now();
        auto until = clock::time_point::max();
        if (detail::ns(duration) < detail::ns(until - now)) until = now + std::chrono::ceil<clock::duration>(duration);
        while (!holds()) {
            if (wait_for(lock, until - std::chrono::steady_clock::now()) == std::cv_status::timeout) return holds();
        }
        return true;
    }

  private:
    headway_condvar condvar_;
};

/* As std::counting_semaphore of C++20. */
class semaphore {
  public:
    explicit semaphore(std::size_t permits) noexcept { headway_semaphore_init(&semaphore_, permits); }
    semaphore(const semaphore &) = delete;
    semaphore &operator=(const semaphore &) = delete;
    void acquire() { detail::check(headway_semaphore_acquire(&semaphore_)); }
    bool try_acquire() noexcept { return headway_semaphore_try_acquire(&semaphore_); }
    void release() noexcept { headway_semaphore_release(&semaphore_); }

  private:
    headway_semaphore semaphore_;
};

/* A bounded queue of values between threads: each comes out once. */
template <class Value> class channel {
  public:
    explicit channel(std::size_t room) { detail::check(headway_channel_create(room, end, &handle_)); }
    channel(const channel &) = delete;
    channel &operator=(const channel &) = delete;
    ~channel() { headway_channel_free(handle_); }

    /* Waits for room; false where the channel is closed. */
    bool send(Value value) {
        auto owned = std::make_unique<Value>(std::move(value));
        int code = headway_channel_send(handle_, owned.get());
        if (code == HEADWAY_E_NONE) return false;
        detail::check(code);
        owned.release();
        return true;
    }
    /* Waits for a value; none where there is none and the channel is closed. */
    std::optional<Value> receive() {
        void *value = nullptr;
        int code = headway_channel_receive(handle_, &value);
        if (code == HEADWAY_E_NONE) return std::nullopt;
        detail::check(code);
        std::unique_ptr<Value> owned(static_cast<Value *>(value));
        return std::move(*owned);
    }
    void close() { detail::check(headway_channel_close(handle_)); }

  private:
    static void end(void *value) noexcept { delete static_cast<Value *>(value); }
    headway_channel *handle_ = nullptr;
};

/* A value that is read often and replaced seldom. */
template <class Value> class read_cell {
  public:
    explicit read_cell(Value value) {
        auto owned = std::make_unique<const Value>(std::move(value));
        detail::check(headway_read_cell_create(const_cast<Value *>(owned.get()), &handle_));
        owned.release();
    }
    read_cell(const read_cell &) = delete;
    read_cell &operator=(const read_cell &) = delete;
    ~read_cell() {
        void *last = nullptr;
        if (headway_read_cell_replace(handle_, nullptr, &last) == HEADWAY_OK) delete static_cast<const Value *>(last);
        headway_read_cell_free(handle_);
    }

    /* Returns what access(value) returns. It is short, throws nothing, and calls nothing of this library. */
    template <class Access> auto read(Access &&access) const noexcept {
        using Result = std::invoke_result_t<Access &, const Value &>;
        static_assert(!std::is_void_v<Result>, "a read returns what it read");
        struct Call {
            std::remove_reference_t<Access> &access;
            std::optional<Result> result{};
        } call{access};
        headway_read_cell_read(
            handle_,
            [](void *value, void *argument) noexcept {
                auto &call = *static_cast<Call *>(argument);
                call.result.emplace(std::invoke(call.access, *static_cast<const Value *>(value)));
            },
            &call);
        return std::move(*call.result);
    }
    /* Waits until every read of the old value has ended. */
    void replace(Value value) {
        auto owned = std::make_unique<const Value>(std::move(value));
        void *old = nullptr;
        detail::check(headway_read_cell_replace(handle_, const_cast<Value *>(owned.get()), &old));
        owned.release();
        delete static_cast<const Value *>(old);
    }

  private:
    headway_read_cell *handle_ = nullptr;
};

/* A variable of which each thread of a runtime has its own, made at its first use. Declare it static. */
template <class Value> class uthread_local {
  public:
    uthread_local() noexcept : local_{end} {}
    uthread_local(const uthread_local &) = delete;
    uthread_local &operator=(const uthread_local &) = delete;
    Value &get() {
        if (void *own = headway_local_get(&local_)) return *static_cast<Value *>(own);
        auto made = std::make_unique<Value>();
        detail::check(headway_local_set(&local_, made.get()));
        return *made.release();
    }

  private:
    static void end(void *value) noexcept { delete static_cast<Value *>(value); }
    headway_local local_;
};

} // namespace headway

#endif
