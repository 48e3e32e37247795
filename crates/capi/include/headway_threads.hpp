/* Threads in user space for C++17: as std::thread, std::mutex and std::condition_variable, over headway_threads.h. See docs/threads.md. */
#ifndef HEADWAY_THREADS_HPP
#define HEADWAY_THREADS_HPP

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
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>

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

template <class Rep, class Period> std::uint64_t ns(std::chrono::duration<Rep, Period> duration) {
    auto ns = std::chrono::ceil<std::chrono::nanoseconds>(duration).count();
    return ns > 0 ? static_cast<std::uint64_t>(ns) : 0;
}

} // namespace detail

/* Kernel threads that run threads of the program. Its destructor abandons threads that have not ended. */
class runtime {
  public:
    explicit runtime(std::size_t kthreads = 1, std::size_t stack_bytes = 0) {
        headway_runtime_options options{};
        options.size = sizeof options;
        options.kthreads = kthreads;
        options.stack_bytes = stack_bytes;
        detail::check(headway_runtime_start(&options, &handle_));
    }
    runtime(const runtime &) = delete;
    runtime &operator=(const runtime &) = delete;
    ~runtime() { headway_runtime_stop(handle_); }

    /* Runs body() in a thread of the runtime. Returns what it returns, or throws what it throws. */
    template <class Body> std::invoke_result_t<Body &> run(Body &&body) {
        using Result = std::invoke_result_t<Body &>;
        struct Call {
            std::remove_reference_t<Body> &body;
            std::conditional_t<std::is_void_v<Result>, std::optional<char>, std::optional<Result>> result{};
            std::exception_ptr failure{};
        } call{body};
        detail::check(headway_runtime_run(
            handle_,
            [](void *argument) {
                auto &call = *static_cast<Call *>(argument);
                try {
                    if constexpr (std::is_void_v<Result>) std::invoke(call.body);
                    else call.result.emplace(std::invoke(call.body));
                } catch (...) {
                    call.failure = std::current_exception();
                }
            },
            &call));
        if (call.failure) std::rethrow_exception(call.failure);
        if constexpr (!std::is_void_v<Result>) return std::move(*call.result);
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
        auto until = std::chrono::steady_clock::now() + duration;
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

} // namespace headway

#endif
