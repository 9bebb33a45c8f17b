// Memory that is used again: a fresh 100 MB per frame would cost more in page faults than in writing it.
#pragma once

#include <cstddef>

namespace hush {

// At least `bytes` bytes, aligned to a cache line; they go back to the pool with it.
class Recycled {
public:
    explicit Recycled(size_t bytes);
    ~Recycled();
    Recycled(const Recycled&) = delete;
    Recycled& operator=(const Recycled&) = delete;
    void* get() const { return memory_; }

private:
    void* memory_;
    size_t bytes_;
};

// Gives all memory that waits for its next use back to the system: for long-running programs with nothing to do.
void release_waiting();

}  // namespace hush
