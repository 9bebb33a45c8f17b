// A pool of standard threads that share out numbered jobs; it lives beside other pools (such as PyTorch's) in peace.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>

namespace hush {

constexpr int kMostThreads = 256;

int default_threads();
int thread_count(int wanted);  // 1 .. kMostThreads; 0 and less are all cores

// Calls job(context, index) for every index in 0 .. count-1 on `threads` workers (0: all cores) and waits for them.
// Inside a job it runs on the worker that calls it. A child process (fork) starts workers of its own.
void run_jobs(int count, int threads, void (*job)(void* context, int index), void* context);

// What run_jobs throws when its work is not wanted any more.
struct Cancelled : std::exception {
    const char* what() const noexcept override { return "the work was cancelled"; }
};

// While this lives, run_jobs of this thread begins no further job once `flag` is set.
class CancelledBy {
public:
    explicit CancelledBy(const std::atomic<bool>* flag);
    ~CancelledBy();
    CancelledBy(const CancelledBy&) = delete;
    CancelledBy& operator=(const CancelledBy&) = delete;

private:
    const std::atomic<bool>* before_;
};

// The same for anything that can be called with an index.
template <class Job>
inline void parallel_for(int count, int threads, Job&& job) {
    using Plain = typename std::remove_reference<Job>::type;
    run_jobs(count, threads, [](void* context, int index) { (*static_cast<Plain*>(context))(index); }, &job);
}

// A mutex for whole frames. Held while the process forks, it is free in the child, which has no thread to release it.
class FrameLock {
public:
    void lock();
    void unlock();

private:
    unsigned held_by_ = 0;  // number of the process that holds it; 0: none
};

// Sleeps until `state` is `wanted`; whoever stores that calls wake_waiting afterwards.
void wait_until(const std::atomic<uint8_t>& state, uint8_t wanted);
void wake_waiting();

}  // namespace hush
