// Arrays whose memory is used again: a fresh 100 MB array per frame would cost more in page faults than in writing it.
#include <cstdlib>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace nb = nanobind;
using namespace nb::literals;

namespace {

constexpr size_t kKeptBytes = 512u << 20;  // memory that waits for its next use, at most
constexpr size_t kHugePage = 2u << 20;

struct Block {
    void* memory;
    size_t bytes;
};

class Pool {
public:
    static Pool& instance() {
        static Pool* pool = new Pool;  // never destroyed: arrays may outlive the module
        return *pool;
    }

    Block take(size_t bytes) {
        std::lock_guard<std::mutex> lock(mutex_);
        for (size_t k = 0; k < waiting_.size(); ++k)
            if (waiting_[k].bytes >= bytes && waiting_[k].bytes <= bytes + bytes / 4) {
                Block found = waiting_[k];
                waiting_.erase(waiting_.begin() + (std::ptrdiff_t)k);
                kept_ -= found.bytes;
                return found;
            }
        Block fresh{::operator new(bytes, alignment(bytes)), bytes};
#if defined(__linux__)
        if (bytes >= kHugePage) madvise(fresh.memory, bytes, MADV_HUGEPAGE);
#endif
        return fresh;
    }

    void give(Block block) {
        std::lock_guard<std::mutex> lock(mutex_);
        if (kept_ + block.bytes > kKeptBytes) {
            ::operator delete(block.memory, alignment(block.bytes));
            return;
        }
        kept_ += block.bytes;
        waiting_.push_back(block);
    }

private:
    static std::align_val_t alignment(size_t bytes) { return std::align_val_t(bytes >= kHugePage ? kHugePage : 64); }

    std::mutex mutex_;
    std::vector<Block> waiting_;
    size_t kept_ = 0;
};

template <class T>
nb::ndarray<nb::numpy, T> empty(const std::vector<size_t>& shape) {
    size_t count = 1;
    for (size_t side : shape) {
        if (side && count > (size_t(1) << 40) / side) throw nb::value_error("an array of that shape is too large");
        count *= side;
    }
    auto held = std::make_unique<Block>(Pool::instance().take(count * sizeof(T) + 64));
    void* memory = held->memory;
    nb::capsule owner(held.release(), [](void* p) noexcept {
        std::unique_ptr<Block> block(static_cast<Block*>(p));
        Pool::instance().give(*block);
    });
    return nb::ndarray<nb::numpy, T>(memory, shape.size(), shape.data(), owner);
}

}  // namespace

void bind_recycled(nb::module_& m) {
    m.def("empty_float32", &empty<float>, "shape"_a, "An uninitialised array whose memory is used again once nobody holds it.");
    m.def("empty_int32", &empty<int32_t>, "shape"_a, "The same for 32-bit integers.");
}
