// Fragments that wait to be blended, in eight pixels side by side: in each of them nearest first.
#pragma once

#include <utility>

#include "kernels.h"

namespace hush::HUSH_ISA {
namespace {

// One fragment in each of eight pixels, or none where all is 0 but the entry.
struct Waiting {
    f8 inverse_depth, alpha;
    i8 entry;  // whose; ties in depth go to the smaller one
};

// Sorted by insertion, in all eight pixels at once: Gaussians come nearly in order, so that few places have to be passed.
// Where there is no fragment, none comes behind either: pixels without one are filled before another place is taken.
class RowQueue {
public:
    HUSH_MEMBER bool empty() const { return first_ == end_; }
    HUSH_MEMBER const Waiting& front() const { return slots_[first_]; }
    HUSH_MEMBER void pop() { ++first_; }
    HUSH_MEMBER void clear() { first_ = end_ = 0; }

    // `counts`: pixels that have a fragment.
    HUSH_MEMBER void insert(const Waiting& fragments, i8 counts, const Waiting& none) {
        Waiting* slots = slots_.get();
        int k = end_;
        while (k > first_ && !any(counts & (slots[k - 1].alpha > splat(0)))) --k;  // all of them fit in here
        if (k == end_) {
            if (end_ == room_) slots = make_room(), k = end_;
            slots[end_++] = none;
        }
        Waiting carried = either(counts, fragments, slots[k]);
        for (i8 moving = counts; k > first_; --k) {
            const Waiting before = slots[k - 1];
            i8 passes = moving & (carried.inverse_depth >= before.inverse_depth);
            if (!any(passes)) break;
            const i8 equal = passes & (carried.inverse_depth == before.inverse_depth);
            if (any(equal)) passes = passes & ~(equal & (carried.entry > before.entry));
            moving = passes;
            slots[k] = either(passes, before, carried);
            carried = either(passes, carried, before);
        }
        slots[k] = carried;
    }

private:
    Buffer<Waiting> slots_;
    int room_ = 0, first_ = 0, end_ = 0;

    static HUSH_MEMBER Waiting either(i8 mask, const Waiting& a, const Waiting& b) {
        return {select(mask, a.inverse_depth, b.inverse_depth), select(mask, a.alpha, b.alpha), select(mask, a.entry, b.entry)};
    }

    __attribute__((noinline)) Waiting* make_room() {
        const int count = end_ - first_;
        if (room_ && first_ > room_ / 2) {
            std::memmove((void*)&slots_[0], &slots_[first_], count * sizeof(Waiting));
        } else {
            room_ = room_ ? 2 * room_ : 32;
            Buffer<Waiting> larger(room_);
            if (count) std::memcpy((void*)&larger[0], &slots_[first_], count * sizeof(Waiting));
            std::swap(slots_, larger);
        }
        first_ = 0, end_ = count;
        return slots_.get();
    }
};

}  // namespace
}  // namespace hush::HUSH_ISA
