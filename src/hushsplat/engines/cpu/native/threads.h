// A pool of standard threads that share out numbered jobs; it lives beside other pools (such as PyTorch's) in peace.
#pragma once

#include <type_traits>

namespace hush {

int default_threads();

// Calls job(context, index) for every index in 0 .. count-1 on `threads` workers (0: all cores) and waits for them.
void run_jobs(int count, int threads, void (*job)(void* context, int index), void* context);

// The same for anything that can be called with an index.
template <class Job>
inline void parallel_for(int count, int threads, Job&& job) {
    using Plain = typename std::remove_reference<Job>::type;
    run_jobs(count, threads, [](void* context, int index) { (*static_cast<Plain*>(context))(index); }, &job);
}

}  // namespace hush
