#include "threads.h"

#include <algorithm>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#endif

namespace hush {
namespace {

thread_local bool in_job = false;
thread_local const std::atomic<bool>* cancel_flag = nullptr;

void check_cancelled(const std::atomic<bool>* flag) {
    if (flag && flag->load(std::memory_order_relaxed)) throw Cancelled();
}

struct Batch {
    void (*job)(void*, int);
    void* context;
    int count;
    int wanted;  // helpers that may join
    const std::atomic<bool>* cancelled;
    std::atomic<int> next{0};
    std::atomic<int> joined{0};
    std::atomic<int> busy{0};
    std::exception_ptr error;
    std::mutex error_mutex;

    void work() {
        in_job = true;
        try {
            for (int index; (index = next.fetch_add(1)) < count;) {
                check_cancelled(cancelled);
                job(context, index);
            }
        } catch (...) {
            std::lock_guard<std::mutex> lock(error_mutex);
            error = std::current_exception();
            next = count;
        }
        in_job = false;
    }
};

// Helpers sleep until a batch is posted. Batches of different callers run one after the other.
class Pool {
public:
    void run(int count, int threads, void (*job)(void*, int), void* context) {
        std::lock_guard<std::mutex> one_at_a_time(callers_);
        Batch batch;
        batch.job = job;
        batch.context = context;
        batch.count = count;
        batch.wanted = threads - 1;
        batch.cancelled = cancel_flag;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while (helpers_ < batch.wanted) {
                std::thread([this] { help(); }).detach();
                ++helpers_;
            }
            current_ = &batch;
            ++generation_;
        }
        wake_.notify_all();
        batch.work();
        std::unique_lock<std::mutex> lock(mutex_);
        current_ = nullptr;
        done_.wait(lock, [&] { return batch.busy == 0; });
        if (batch.error) std::rethrow_exception(batch.error);
    }

private:
    void help() {
        unsigned long seen = 0;
        std::unique_lock<std::mutex> lock(mutex_);
        for (;;) {
            wake_.wait(lock, [&] { return current_ && generation_ != seen; });
            seen = generation_;
            Batch* batch = current_;
            if (++batch->joined > batch->wanted) continue;
            ++batch->busy;
            lock.unlock();
            batch->work();
            lock.lock();
            if (--batch->busy == 0) done_.notify_all();
        }
    }

    std::mutex callers_, mutex_;
    std::condition_variable wake_, done_;
    int helpers_ = 0;
    Batch* current_ = nullptr;
    unsigned long generation_ = 0;
};

// What belongs to one process. A child must not use its parent's: the helpers are not there, and a thread that is not
// there either may hold a mutex.
struct Process {
    Pool pool;
    std::mutex mutex;
    std::condition_variable changed;  // a FrameLock was released, or a state that somebody waits for has come

    static Process& here();
};

std::atomic<Process*> process{nullptr};
std::atomic<unsigned> process_number{1};  // one more in a child

// Never destroyed: helpers may still sleep in it when the process exits.
Process& Process::here() {
    Process* found = process.load(std::memory_order_acquire);
    if (found) return *found;
    auto* fresh = new Process;
    if (process.compare_exchange_strong(found, fresh, std::memory_order_acq_rel)) return *fresh;
    delete fresh;  // another thread was first
    return *found;
}

#if !defined(_WIN32)
[[maybe_unused]] const int fork_handler = pthread_atfork(nullptr, nullptr, [] {
    process = nullptr;
    ++process_number;
});
#endif

}  // namespace

int default_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

int thread_count(int wanted) { return std::min(wanted > 0 ? wanted : default_threads(), kMostThreads); }

void run_jobs(int count, int threads, void (*job)(void*, int), void* context) {
    if (count <= 0) return;
    threads = std::min(thread_count(threads), count);
    if (threads == 1 || in_job) {
        for (int index = 0; index < count; ++index) {
            if (!in_job) check_cancelled(cancel_flag);
            job(context, index);
        }
        return;
    }
    Process::here().pool.run(count, threads, job, context);
}

CancelledBy::CancelledBy(const std::atomic<bool>* flag) : before_(cancel_flag) { cancel_flag = flag; }
CancelledBy::~CancelledBy() { cancel_flag = before_; }

void FrameLock::lock() {
    Process& here = Process::here();
    std::unique_lock<std::mutex> lock(here.mutex);
    here.changed.wait(lock, [&] { return held_by_ != process_number; });
    held_by_ = process_number;
}

void FrameLock::unlock() {
    Process& here = Process::here();
    {
        std::lock_guard<std::mutex> lock(here.mutex);
        held_by_ = 0;
    }
    here.changed.notify_all();
}

void wait_until(const std::atomic<uint8_t>& state, uint8_t wanted) {
    Process& here = Process::here();
    std::unique_lock<std::mutex> lock(here.mutex);
    here.changed.wait(lock, [&] { return state.load(std::memory_order_acquire) == wanted; });
}

void wake_waiting() {
    Process& here = Process::here();
    {
        std::lock_guard<std::mutex> lock(here.mutex);
    }  // whoever looked before the store is asleep by now
    here.changed.notify_all();
}

}  // namespace hush
