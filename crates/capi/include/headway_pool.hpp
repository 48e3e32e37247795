/* A pool in process for C++17: submit a callable, get its std::future. Over headway_pool.h; see docs/pool.md. */
#ifndef HEADWAY_POOL_HPP
#define HEADWAY_POOL_HPP

#include "headway_error.hpp"
#include "headway_pool.h"

#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <initializer_list>
#include <memory>
#include <type_traits>
#include <utility>

namespace headway {

namespace detail {

/* What runs as a job, and owns itself until that has ended. */
template <class Job> struct owned_job {
    static void run_owned(void *data) noexcept { static_cast<Job *>(data)->run(); }
    static void end_owned(void *data, int code) noexcept {
        std::unique_ptr<Job> job(static_cast<Job *>(data));
        if (code != HEADWAY_OK) job->unrun(code);
    }
};

/* A callable, and the promise of its result. */
template <class Body> struct promised_job : owned_job<promised_job<Body>> {
    using Result = std::invoke_result_t<Body &>;
    explicit promised_job(Body body) : body(std::move(body)) {}
    void run() {
        try {
            if constexpr (std::is_void_v<Result>) {
                std::invoke(body);
                promise.set_value();
            } else {
                promise.set_value(std::invoke(body));
            }
        } catch (...) {
            promise.set_exception(std::current_exception());
        }
    }
    void unrun(int code) { promise.set_exception(std::make_exception_ptr(error(code))); }
    Body body;
    std::promise<Result> promise;
};

/* A callable that nobody awaits. */
template <class Body> struct posted_job : owned_job<posted_job<Body>> {
    explicit posted_job(Body body) : body(std::move(body)) {}
    void run() { std::invoke(body); }
    void unrun(int) {}
    Body body;
};

} // namespace detail

/* Threads that run callables in the order that a policy says. Classes are numbers, in the order of their declaration. */
class pool {
  public:
    /* With all options; their size is set here. */
    explicit pool(headway_pool_options options = {}) {
        options.size = sizeof options;
        detail::check(headway_pool_start(&options, &handle_));
    }
    /* pool({{.name = "point"}, {.name = "report"}}, "srpt"), as far as the compiler knows designated initializers. */
    explicit pool(std::initializer_list<headway_pool_class> classes, const char *policy = nullptr, std::uint32_t workers = 0)
        : pool([&] {
              headway_pool_options options{};
              options.policy = policy;
              options.classes = classes.begin();
              options.class_count = classes.size();
              options.workers = workers;
              return options;
          }()) {}
    pool(const pool &) = delete;
    pool &operator=(const pool &) = delete;
    /* Waits for all jobs. stop() ends sooner. */
    ~pool() {
        if (handle_ != nullptr) headway_pool_stop(handle_, UINT64_MAX, nullptr);
    }

    /* Submits body(). The future has what it returns, or throws what it threw, or an error if it was shed, cancelled or abandoned. Throws an
     * error if it is not accepted: HEADWAY_E_OVERLOADED. Dropping the future lets the job go on. */
    template <class Body> auto submit(std::uint32_t class_index, Body &&body) {
        using Job = detail::promised_job<std::decay_t<Body>>;
        auto job = std::make_unique<Job>(std::forward<Body>(body));
        auto result = job->promise.get_future();
        submit_owned(class_index, std::move(job));
        return result;
    }

    /* Submits body() without a future. What it throws ends the program; where it is not begun, it is destroyed. */
    template <class Body> void post(std::uint32_t class_index, Body &&body) {
        submit_owned(class_index, std::make_unique<detail::posted_job<std::decay_t<Body>>>(std::forward<Body>(body)));
    }

    /* The result of a future, without keeping the worker: for a job that waits for another one. */
    template <class Result> static Result get(std::future<Result> future) {
        headway_pool_blocking([](void *data) noexcept { static_cast<std::future<Result> *>(data)->wait(); }, &future);
        return future.get();
    }

    void wait_idle() const { detail::check(headway_pool_wait_idle(handle_)); }

    headway_pool_stats stats() const {
        headway_pool_stats stats{};
        stats.size = sizeof stats;
        detail::check(headway_pool_read_stats(handle_, &stats));
        return stats;
    }

    /* Ends the pool: as headway_pool_stop(). Nothing else may be called afterwards. */
    void stop(std::chrono::nanoseconds deadline) {
        auto deadline_ns = static_cast<std::uint64_t>(deadline.count() > 0 ? deadline.count() : 0);
        detail::check(headway_pool_stop(std::exchange(handle_, nullptr), deadline_ns, nullptr));
    }

  private:
    template <class Job> void submit_owned(std::uint32_t class_index, std::unique_ptr<Job> job) {
        headway_job_options options{};
        options.size = sizeof options;
        options.function = &Job::run_owned;
        options.ended = &Job::end_owned;
        options.data = job.get();
        options.class_index = class_index;
        detail::check(headway_pool_try_submit(handle_, &options, nullptr, nullptr));
        job.release();
    }

    headway_pool *handle_ = nullptr;
};

/* Whether the calling job was cancelled or its pool has ended: a long one asks now and then. */
inline bool cancelled() noexcept { return headway_pool_cancelled() != 0; }

} // namespace headway

#endif
