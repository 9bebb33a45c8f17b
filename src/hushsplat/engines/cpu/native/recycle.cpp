#include "recycle.h"

#include <algorithm>
#include <mutex>
#include <new>
#include <vector>

#if !defined(_WIN32)
#include <pthread.h>
#include <unistd.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif
#if defined(__GLIBC__)
#include <malloc.h>
#endif

namespace hush {
namespace {

constexpr size_t kHugePage = 2u << 20;

// Memory that waits for its next use, at most: a frame of 20 million Gaussians takes more than half a gigabyte.
size_t most_kept() {
    size_t most = 512u << 20;
#if !defined(_WIN32)
    const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    if (pages > 0 && page > 0) most = std::max(most, (size_t)pages * (size_t)page / 16);
#endif
    return most;
}

std::align_val_t alignment(size_t bytes) { return std::align_val_t(bytes >= kHugePage ? kHugePage : 64); }

struct Block {
    void* memory;
    size_t bytes;
};

struct Pool {
    std::mutex mutex;
    std::vector<Block> waiting;
    size_t kept = 0;
    const size_t most = most_kept();

    static Pool& instance() {
        static Pool* pool = new Pool;  // never destroyed: arrays may outlive the module
        return *pool;
    }
};

#if !defined(_WIN32)
// No thread is at the pool while the process forks, so that the child finds it whole and can use it.
void hold() { Pool::instance().mutex.lock(); }
void let_go() { Pool::instance().mutex.unlock(); }
[[maybe_unused]] const int fork_handlers = pthread_atfork(hold, let_go, let_go);
#endif

}  // namespace

Recycled::Recycled(size_t bytes) {
    {
        Pool& pool = Pool::instance();
        std::lock_guard<std::mutex> lock(pool.mutex);
        for (size_t k = pool.waiting.size(); k-- > 0;) {  // what was used last is warmest
            const Block block = pool.waiting[k];
            if (block.bytes < bytes || block.bytes > 2 * bytes) continue;  // an active set is smaller after a search
            pool.waiting.erase(pool.waiting.begin() + (std::ptrdiff_t)k);
            pool.kept -= block.bytes;
            memory_ = block.memory;
            bytes_ = block.bytes;
            return;
        }
    }
    memory_ = ::operator new(bytes, alignment(bytes));
    bytes_ = bytes;
#if defined(__linux__)
    if (bytes >= kHugePage) madvise(memory_, bytes, MADV_HUGEPAGE);
#endif
}

Recycled::~Recycled() {
    Pool& pool = Pool::instance();
    std::vector<Block> dropped;
    {
        std::lock_guard<std::mutex> lock(pool.mutex);
        pool.waiting.push_back({memory_, bytes_});
        pool.kept += bytes_;
        // The oldest first: after a resize their size is not asked for any more.
        size_t count = 0;
        for (; pool.kept > pool.most; ++count) pool.kept -= pool.waiting[count].bytes;
        const auto end = pool.waiting.begin() + (std::ptrdiff_t)count;
        dropped.assign(pool.waiting.begin(), end);
        pool.waiting.erase(pool.waiting.begin(), end);
    }
    for (const Block& block : dropped) ::operator delete(block.memory, alignment(block.bytes));
}

void release_waiting() {
    std::vector<Block> freed;
    {
        Pool& pool = Pool::instance();
        std::lock_guard<std::mutex> lock(pool.mutex);
        freed.swap(pool.waiting);
        pool.kept = 0;
    }
    for (const Block& block : freed) ::operator delete(block.memory, alignment(block.bytes));
#if defined(__GLIBC__)
    malloc_trim(0);  // or the library keeps it for itself
#endif
}

}  // namespace hush
