// Gaussians of a tile, sorted by some key.
#pragma once

#include "kernels.h"

namespace hush::HUSH_ISA {
namespace {

struct Entry {
    uint32_t key;
    int32_t slot;  // chunk · kChunk + slot
};

// Least significant digit first, stable; `scratch` is as long as `entries`. The result ends up in `entries`.
inline void radix_sort(Entry* entries, Entry* scratch, size_t n) {
    static thread_local uint32_t counts[3][2048];
    std::memset(counts, 0, sizeof counts);
    for (size_t k = 0; k < n; ++k) {
        uint32_t key = entries[k].key;
        ++counts[0][key & 2047];
        ++counts[1][key >> 11 & 2047];
        ++counts[2][key >> 22];
    }
    Entry *from = entries, *to = scratch;
    for (int pass = 0; pass < 3; ++pass) {
        uint32_t sum = 0;
        bool one_digit = false;
        for (uint32_t& c : counts[pass]) {
            uint32_t here = c;
            one_digit |= here == n;
            c = sum;
            sum += here;
        }
        if (one_digit) continue;
        for (size_t k = 0; k < n; ++k) to[counts[pass][from[k].key >> (11 * pass) & 2047]++] = from[k];
        Entry* swap = from;
        from = to;
        to = swap;
    }
    if (from != entries) std::memcpy(entries, from, n * sizeof(Entry));
}

}  // namespace
}  // namespace hush::HUSH_ISA
