#include "threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace hush {
namespace {

struct Batch {
    void (*job)(void*, int);
    void* context;
    int count;
    int wanted;  // helpers that may join
    std::atomic<int> next{0};
    std::atomic<int> joined{0};
    std::atomic<int> busy{0};
    std::exception_ptr error;
    std::mutex error_mutex;

    void work() {
        try {
            for (int index; (index = next.fetch_add(1)) < count;) job(context, index);
        } catch (...) {
            std::lock_guard<std::mutex> lock(error_mutex);
            error = std::current_exception();
            next = count;
        }
    }
};

// Helpers sleep until a batch is posted. Batches of different callers run one after the other.
class Pool {
public:
    static Pool& instance() {
        static Pool* pool = new Pool;  // never destroyed: helpers may still sleep in it when the process exits
        return *pool;
    }

    void run(int count, int threads, void (*job)(void*, int), void* context) {
        std::lock_guard<std::mutex> one_at_a_time(callers_);
        Batch batch;
        batch.job = job;
        batch.context = context;
        batch.count = count;
        batch.wanted = threads - 1;
        {
            std::lock_guard<std::mutex> lock(mutex_);
            while ((int)helpers_.size() < batch.wanted) {
                helpers_.emplace_back([this] { help(); });
                helpers_.back().detach();
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
    std::vector<std::thread> helpers_;
    Batch* current_ = nullptr;
    unsigned long generation_ = 0;
};

}  // namespace

int default_threads() { return std::max(1u, std::thread::hardware_concurrency()); }

void run_jobs(int count, int threads, void (*job)(void*, int), void* context) {
    if (count <= 0) return;
    if (threads <= 0) threads = default_threads();
    threads = std::min({threads, count, 256});
    if (threads == 1) {
        for (int index = 0; index < count; ++index) job(context, index);
        return;
    }
    Pool::instance().run(count, threads, job, context);
}

}  // namespace hush
