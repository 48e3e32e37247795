// Squares on their way through a queue, from a thousand threads in user space to one.
//   c++ -std=c++17 -O2 squares.cc $(pkg-config --cflags --libs headway) -o squares && ./squares 2
#include <cstdlib>
#include <headway_threads.hpp>
#include <iostream>
#include <queue>
#include <vector>

int main(int argc, char **argv) {
    headway::runtime runtime(argc > 1 ? std::atoi(argv[1]) : 1);
    long sum = runtime.run([] {
        headway::mutex mutex;
        headway::condition_variable filled;
        std::queue<long> squares;
        std::vector<headway::thread> threads;
        for (long number = 1; number <= 1000; number++) {
            threads.emplace_back([&, number] {
                {
                    std::lock_guard lock(mutex);
                    squares.push(number * number);
                }
                filled.notify_one();
            });
        }
        long sum = 0;
        for (size_t taken = 0; taken < threads.size(); taken++) {
            std::unique_lock lock(mutex);
            filled.wait(lock, [&] { return !squares.empty(); });
            sum += squares.front();
            squares.pop();
        }
        for (auto &thread : threads) thread.join();
        return sum;
    });
    std::cout << sum << "\n";
}
