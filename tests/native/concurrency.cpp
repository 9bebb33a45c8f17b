// Hammers what threads share: the pool (callers at once, jobs inside of jobs, errors, children of fork()), locks and
// waits, and the choice of kernels. Each check prints its name; the exit code is the number of those that failed.
// tests/engines/test_native_programs.py runs it as it is, tools/sanitize.py under ThreadSanitizer.
#include "engine.h"

#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace hush {
// dispatch.cpp chooses among the builds of the passes; here there is one, and it is empty.
extern const Kernels kernels_portable;
const Kernels kernels_portable = [] {
    Kernels kernels{};
    kernels.name = "portable";
    return kernels;
}();
}  // namespace hush

namespace {

int failures = 0;

void check(bool condition, const char* name) {
    std::printf("%s %s\n", condition ? "ok    " : "FAILED", name);
    std::fflush(stdout);
    failures += !condition;
}

// Every index once, whoever takes it.
bool shares_out(int count, int threads) {
    std::vector<int> seen(count, 0);
    hush::parallel_for(count, threads, [&](int index) { ++seen[index]; });
    for (int times : seen)
        if (times != 1) return false;
    return true;
}

// Which threads work: each job waits until as many as are wanted have come, so that no one can take them all.
size_t workers(int threads) {
    std::mutex mutex;
    std::set<std::thread::id> seen;
    std::atomic<int> here{0};
    hush::parallel_for(threads, threads, [&](int) {
        ++here;
        while (here < threads) std::this_thread::yield();
        std::lock_guard<std::mutex> lock(mutex);
        seen.insert(std::this_thread::get_id());
    });
    return seen.size();
}

bool nested_jobs_run_where_they_are() {
    std::atomic<int> sum{0}, strangers{0};
    hush::parallel_for(16, 4, [&](int outer) {
        const auto me = std::this_thread::get_id();
        hush::parallel_for(8, 4, [&](int inner) {
            sum += 8 * outer + inner;
            strangers += std::this_thread::get_id() != me;
        });
    });
    return sum == 127 * 64 && strangers == 0;
}

bool callers_at_once() {
    std::atomic<int> wrong{0};
    std::vector<std::thread> callers;
    for (int k = 0; k < 4; ++k)
        callers.emplace_back([&, k] {
            for (int round = 0; round < 200; ++round) wrong += !shares_out(1 + (7 * round + k) % 50, 1 + round % 4);
        });
    for (std::thread& caller : callers) caller.join();
    return wrong == 0;
}

bool errors_come_back() {
    for (int round = 0; round < 20; ++round) {
        try {
            hush::parallel_for(50, 4, [&](int index) {
                if (index == 7 + round) throw std::runtime_error("seven");
            });
            return false;
        } catch (const std::runtime_error& error) {
            if (std::strcmp(error.what(), "seven") != 0) return false;
        }
    }
    return shares_out(100, 4);
}

// 0 if the child says so; a child that hangs is ended by its alarm.
template <class Work>
bool in_child(Work&& work) {
    const pid_t child = fork();
    if (child == 0) {
        alarm(60);
        _exit(work() ? 0 : 1);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

// Forks while other threads use the pool and hold a lock.
bool children_have_workers_of_their_own() {
    hush::FrameLock lock;
    std::atomic<bool> stop{false}, held{false};
    std::thread holder([&] {
        std::lock_guard<hush::FrameLock> hold(lock);
        held = true;
        while (!stop) hush::parallel_for(8, 3, [](int) { std::this_thread::yield(); });
    });
    while (!held) std::this_thread::yield();
    bool fine = true;
    for (int round = 0; round < 20 && fine; ++round)
        fine = in_child([&] {
            std::lock_guard<hush::FrameLock> mine(lock);
#if defined(__SANITIZE_THREAD__)
            return shares_out(100, 1);  // it cannot follow threads that begin after such a fork
#else
            return workers(3) == 3 && shares_out(1000, 4) &&
                   in_child([] { return workers(2) == 2; });  // and a child of the child
#endif
        });
    stop = true;
    holder.join();
    return fine && workers(3) == 3;
}

bool frame_lock_excludes() {
    hush::FrameLock lock;
    int count = 0;
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k)
        threads.emplace_back([&] {
            for (int round = 0; round < 1000; ++round) {
                std::lock_guard<hush::FrameLock> hold(lock);
                ++count;
            }
        });
    for (std::thread& thread : threads) thread.join();
    return count == 4000;
}

bool waits_end() {
    for (int round = 0; round < 200; ++round) {
        std::atomic<uint8_t> state{1};
        int value = 0;
        std::thread other([&] {
            value = round;
            state.store(2, std::memory_order_release);
            hush::wake_waiting();
        });
        hush::wait_until(state, 2);
        const bool fine = value == round;
        other.join();
        if (!fine) return false;
    }
    return true;
}

// The chunk is in work until somebody waits for it, which a thread that only spins never says.
bool a_wait_for_a_chunk_sleeps() {
    std::atomic<uint8_t> state{1};
    std::thread other([&] {
        while (state != 3) std::this_thread::yield();
        if (state.exchange(2) == 3) hush::wake_waiting();
    });
    hush::await_projected(state);
    other.join();
    return state == 2;
}

bool kernels_are_chosen_while_others_draw() {
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (int k = 0; k < 4; ++k)
        threads.emplace_back([&, k] {
            for (int round = 0; round < 1000; ++round) {
                if (k == 0) hush::choose_kernels("portable");
                wrong += &hush::kernels() != &hush::kernels_portable;
            }
        });
    for (std::thread& thread : threads) thread.join();
    return wrong == 0;
}

}  // namespace

int main() {
    check(shares_out(10000, 4) && shares_out(1, 4) && shares_out(3, 1) && shares_out(0, 4), "every index once");
    check(workers(5) == 5, "as many workers as wanted");
    check(nested_jobs_run_where_they_are(), "jobs inside of jobs run where they are");
    check(callers_at_once(), "callers at once");
    check(errors_come_back(), "errors come back");
    check(frame_lock_excludes(), "a frame lock excludes");
    check(waits_end(), "waits end");
    check(a_wait_for_a_chunk_sleeps(), "a wait for a chunk sleeps");
    check(kernels_are_chosen_while_others_draw(), "kernels are chosen while others draw");
    check(children_have_workers_of_their_own(), "children have workers of their own");
    return failures;
}
