// Fragments that wait to be blended, in eight pixels side by side: in each of them nearest first.
#pragma once

#include <algorithm>

#include "kernels.h"

namespace hush::HUSH_ISA {
namespace {

// One fragment in each of eight pixels, or none where all is 0 but the entry.
struct Waiting {
    f32x8 inverse_depth, alpha;
    i32x8 entry;  // whose; ties in depth go to the smaller one
};

// Sorted by insertion: Gaussians come nearly in order, so that few places have to be passed. All eight pixels are
// sorted at once where about as many fragments wait in each of them, else one by one. Where there is no fragment, none
// comes behind.
class RowQueue {
public:
    HUSH_MEMBER bool empty() const { return first_ == end_; }
    HUSH_MEMBER const Waiting& front() const { return slots_[first_]; }
    HUSH_MEMBER void pop() { ++first_; }
    HUSH_MEMBER void clear() {
        first_ = end_ = 0;
        ends_ = splat_int(0);
    }

    // `counts`: pixels that have a fragment. `none`: what is in the others.
    HUSH_MEMBER void insert(const Waiting& fragments, i32x8 counts, const Waiting& none) {
        if (end_ == room_) make_room();
        ends_ = max(ends_, splat_int(first_));
        const i32x8 ends = ends_;
        ends_ = ends - counts;  // one more
        if (any(counts & (ends == splat_int(end_)))) slots_[end_++] = none;
        if (!any(counts & (ends < splat_int(end_ - kUneven)))) return insert_at(end_ - 1, fragments, counts);
        insert_uneven(fragments, bits(counts), ends);
    }

private:
    static constexpr int kUneven = 20;  // ours: places that some pixels have to pass in vain
    Buffer<Waiting> slots_;
    int room_ = 0, first_ = 0, end_ = 0;
    i32x8 ends_ = splat_int(0);  // of each pixel

    HUSH_MEMBER void insert_at(int k, const Waiting& fragments, i32x8 counts) {
        Waiting* slots = slots_.get();
        Waiting carried = either(counts, fragments, slots[k]);
        for (i32x8 moving = counts; k > first_; --k) {
            const Waiting before = slots[k - 1];
            i32x8 passes = moving & (carried.inverse_depth >= before.inverse_depth);
            if (!any(passes)) break;
            const i32x8 equal = passes & (carried.inverse_depth == before.inverse_depth);
            if (any(equal)) passes = passes & ~(equal & (carried.entry > before.entry));
            moving = passes;
            slots[k] = either(passes, before, carried);
            carried = either(passes, carried, before);
        }
        slots[k] = carried;
    }

    __attribute__((noinline)) void insert_uneven(const Waiting& fragments, unsigned lanes, i32x8 ends) {
        for (; lanes; lanes &= lanes - 1) {
            const int lane = __builtin_ctz(lanes);
            insert_lane(lane, ends[lane], fragments);
        }
    }

    HUSH_MEMBER void insert_lane(int lane, int k, const Waiting& fragments) {
        float* depths =
            (float*)slots_.get() + lane;  // as Waiting is laid out: eight depths, eight alphas, eight entries
        constexpr int kNext = sizeof(Waiting) / sizeof(float);
        const float inverse_depth = fragments.inverse_depth[lane];
        const int32_t entry = fragments.entry[lane];
        float* at = depths + (size_t)k * kNext;
        for (const float* front = depths + (size_t)first_ * kNext; at > front; at -= kNext) {
            const float* before = at - kNext;
            if (inverse_depth < before[0]) break;
            if (inverse_depth == before[0] && entry > entry_of(before)) break;
            at[0] = before[0], at[8] = before[8], at[16] = before[16];
        }
        at[0] = inverse_depth, at[8] = fragments.alpha[lane];
        std::memcpy(at + 16, &entry, 4);
    }

    static int32_t entry_of(const float* lane) {
        int32_t entry;
        std::memcpy(&entry, lane + 16, 4);
        return entry;
    }

    static HUSH_MEMBER Waiting either(i32x8 mask, const Waiting& a, const Waiting& b) {
        return {select(mask, a.inverse_depth, b.inverse_depth), select(mask, a.alpha, b.alpha),
                select(mask, a.entry, b.entry)};
    }

    __attribute__((noinline)) void make_room() {
        const int count = end_ - first_;
        if (room_ && first_ > room_ / 2) {
            std::memmove((void*)&slots_[0], &slots_[first_], count * sizeof(Waiting));
        } else {
            room_ = room_ ? 2 * room_ : 32;
            Buffer<Waiting> larger(room_);
            if (count) std::memcpy((void*)&larger[0], &slots_[first_], count * sizeof(Waiting));
            std::swap(slots_, larger);
        }
        ends_ = ends_ - splat_int(first_);
        first_ = 0, end_ = count;
    }
};

}  // namespace
}  // namespace hush::HUSH_ISA
