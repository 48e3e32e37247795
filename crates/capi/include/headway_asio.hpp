/* A class of a pool as an executor of Asio: asio::post(context.executor(POINT), ...). C++17, Asio 1.22 and later. */
#ifndef HEADWAY_ASIO_HPP
#define HEADWAY_ASIO_HPP

#include "headway_pool.hpp"

#include <asio/execution.hpp>
#include <asio/execution_context.hpp>

namespace headway {

/* Asio's services beside a pool, which outlives it. Its end waits until the pool is idle: jobs that wait have executors of it. */
class asio_context : public asio::execution_context {
  public:
    /* Runs each function as a job of one class. An overloaded class throws error from where it is posted. */
    class executor_type {
      public:
        executor_type(asio_context &context, std::uint32_t class_index) noexcept
            : context_(&context), pool_(&context.pool_), class_index_(class_index) {}
        static constexpr asio::execution::blocking_t query(asio::execution::blocking_t) noexcept {
            return asio::execution::blocking.never;
        }
        asio::execution_context &query(asio::execution::context_t) const noexcept { return *context_; }
        template <class Function> void execute(Function function) const {
            pool_->post(class_index_, std::move(function));
        }
        bool operator==(const executor_type &other) const noexcept {
            return context_ == other.context_ && class_index_ == other.class_index_;
        }
        bool operator!=(const executor_type &other) const noexcept { return !(*this == other); }

      private:
        asio_context *context_;
        pool *pool_;
        std::uint32_t class_index_;
    };

    explicit asio_context(pool &pool) : pool_(pool) {}
    ~asio_context() {
        try { pool_.wait_idle(); } catch (const error &) {} // It was stopped already.
    }
    executor_type executor(std::uint32_t class_index) noexcept { return {*this, class_index}; }

  private:
    pool &pool_;
};

} // namespace headway

#endif
