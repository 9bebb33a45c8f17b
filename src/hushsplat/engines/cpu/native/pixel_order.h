// Per-pixel order, cell by cell of 8×8 px: Gaussians come in the order of their nearest points in the cell, so that
// whatever lies before the nearest point of the next one can be blended already, and pixels that are opaque by then
// take nothing more.
#pragma once

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "footprint.h"
#include "radix.h"
#include "row_queue.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kPatch = 32;  // px: side of the squares whose Gaussians are listed at a time; divides kTile
constexpr int kPatchCells = kPatch / kCell;
constexpr int kPatchPixels = kPatch * kPatch;
constexpr int kBatch = 8;      // ours, measured: Gaussians between two looks at what can be blended
constexpr int kLevels = 1024;  // ours: steps of depth in which a cell's Gaussians are put in order

// A Gaussian that may have fragments in a cell.
struct Reach {
    uint32_t order;  // bits of 1 / depth, about where it is: positive floats sort as integers
    int32_t entry;
};

// A cell of the patch while it is blended.
struct CellBlend {
    int x, y;       // px, of its corner, in the tile
    f32x8 rest[8];  // transmittance in front of what waits, row by row
    unsigned open;  // one bit per row that is not opaque
};

class PixelSorter {
public:
    Buffer<Entry> entries;  // of this patch; the key is the index in the file, by which they are sorted
    int entry_count = 0;

    // Lists the Gaussians of a patch of tile `index`; of `members` those alone, which are projected already, as far as
    // they begin before the depth `end`.
    void list(Scene& scene, const Camera& camera, const TileLists& lists, int index, const Tile& patch,
              const uint64_t* members, float end) {
        const size_t most = (lists.begin[index + 1] - lists.begin[index]) * kChunk;
        entries.resize(most);
        scratch_.resize(most);
        size_t n = 0;
        for (size_t entry = lists.begin[index]; entry < lists.begin[index + 1]; ++entry) {
            const int chunk = lists.chunk[entry];
            if (!members) {
                ensure_projected(scene, camera, chunk);
            } else {
                if (lists.inverse_near[chunk] * end < 1) break;  // and all behind it
                if (!(members[2 * chunk] | members[2 * chunk + 1])) continue;
            }
            each_in_tile(scene, chunk, patch, [&](int slot) {
                const int32_t at = chunk * kChunk + slot;
                if (members && (!(members[at >> 6] >> (at & 63) & 1) || scene.nearest[at] * end < 1)) return;
                entries[n++] = {(uint32_t)scene.id[at], at};
            });
        }
        entry_count = (int)n;
        radix_sort(entries.get(), scratch_.get(), n);
        spread(scene, patch);
    }

    // Calls visit(row, waiting, alpha, rest) for the fragments that are seen, in each pixel front to back, eight pixels
    // at a time; alpha is 0 where none is seen. Calls meet(entry) before an entry's fragments may come.
    template <bool Surfels, class Meet, class Visit>
    void blend(const Scene& scene, const Camera& camera, const Tile& whole, int index, CellBlend& cell, float stop,
               Meet&& meet, Visit&& visit) {
        int since = 0;  // Gaussians since the last look
        for (int step = index * kLevels; step < (index + 1) * kLevels && cell.open; ++step) {
            Reach *reach = reaches_.get() + steps_[step], *end = reaches_.get() + steps_[step + 1];
            if (reach == end) continue;
            if (since >= kBatch) settle(cell, bound_of(step % kLevels), stop, visit), since = 0;
            std::sort(reach, end, [](const Reach& a, const Reach& b) { return a.order > b.order; });
            for (since += (int)(end - reach); reach < end; ++reach)
                if (collect_from<Surfels>(scene, camera, whole, reach->entry, stop, cell)) meet(reach->entry);
        }
        settle(cell, 0, stop, visit);
        for (RowQueue& queue : queues_) queue.clear();
    }

private:
    Buffer<Entry> scratch_;
    Buffer<Reach> unsorted_, reaches_;
    Buffer<int> step_of_;                                 // of each unsorted reach: cell · kLevels + level
    int steps_[kPatchCells * kPatchCells * kLevels + 1];  // where each step begins among the reaches
    uint32_t most_;                                       // bits of the largest 1 / depth in the patch
    int shift_;                                           // 2^shift_ bit patterns are one level
    RowQueue queues_[8];

    static uint32_t word_of(float number) {  // 0 if it is not positive
        uint32_t word;
        std::memcpy(&word, &number, 4);
        return number > 0 ? word : 0;
    }

    int level_of(float inverse_depth) const {
        const uint32_t word = word_of(inverse_depth);
        return word >= most_ ? 0 : (int)std::min<uint32_t>((most_ - word) >> shift_, kLevels - 1);
    }

    // Whatever is of this level or a later one has no larger 1 / depth.
    float bound_of(int level) const {
        const uint32_t word = most_ - ((uint32_t)level << shift_);
        float bound;
        std::memcpy(&bound, &word, 4);
        return bound;
    }

    // Puts the Gaussians in order, in steps, nearest first, in every cell that their boxes meet.
    void spread(const Scene& scene, const Tile& patch) {
        size_t reaches = 0;
        float most = 1e-30f, least = 1e30f;
        for (int k = 0; k < entry_count; ++k) {
            const int at = entries[k].slot;
            const Range cells = cells_of(box_of(scene, at, patch));
            reaches += (size_t)(cells.x1 - cells.x0) * (cells.y1 - cells.y0);
            most = std::max(most, scene.nearest[at]);
            least = std::min(least, scene.projected[at].inverse_depth);
        }
        if (reaches > 0x7fffffff) throw std::length_error("too many Gaussians meet in one place of the picture");
        most_ = word_of(most);
        const uint32_t range = least < most ? most_ - word_of(least) : 0;
        for (shift_ = 0; range >> shift_ >= kLevels;) ++shift_;
        unsorted_.resize(reaches);
        step_of_.resize(reaches);
        reaches_.resize(reaches);
        std::memset(steps_, 0, sizeof steps_);
        size_t end = 0;
        for (int k = 0; k < entry_count; ++k)
            end = scene.surfels ? spread_one<true>(scene, patch, k, end) : spread_one<false>(scene, patch, k, end);
        int sum = 0;
        for (int& step : steps_) sum += std::exchange(step, sum);
        // Each step's place runs to the next one's while it is filled.
        for (size_t k = 0; k < end; ++k) reaches_[steps_[step_of_[k]]++] = unsorted_[k];
        std::memmove(steps_ + 1, steps_, sizeof steps_ - sizeof steps_[0]);
        steps_[0] = 0;
    }

    struct Range {
        int x0, x1, y0, y1;
    };
    static Range box_of(const Scene& scene, int at, const Tile& patch) {  // px of the patch
        const int16_t* box = &scene.box[(size_t)(at / kChunk) * 4 * kChunk] + at % kChunk;
        return {std::max(box[0] - patch.x0, 0), std::min(box[kChunk] - patch.x0, patch.width),
                std::max(box[2 * kChunk] - patch.y0, 0), std::min(box[3 * kChunk] - patch.y0, patch.height)};
    }
    static Range cells_of(const Range& box) {
        return {box.x0 / kCell, (box.x1 + kCell - 1) / kCell, box.y0 / kCell, (box.y1 + kCell - 1) / kCell};
    }

    // What of a box lies in one column or row of cells.
    struct Part {
        float middle;   // px, from the projected centre
        float largest;  // slope · (x - centre) of its pixels x, and a little more against rounding
        Part() = default;
        HUSH_MEMBER Part(int begin, int end, int cell, float center, float slope) {
            const float first = (float)std::max(begin, cell * kCell), last = (float)std::min(end, (cell + 1) * kCell);
            middle = 0.5f * (first + last) - center;
            largest = std::max(slope * (first + 0.49f - center), slope * (last - 0.49f - center));
        }
    };

    // The largest 1 / depth of a Gaussian in each cell is bounded. A surfel's is linear in the pixel where its plane
    // decides, so that corners bound it: large surfels seen at a slant are much farther in most cells than at their
    // nearest point.
    template <bool Surfels>
    HUSH_MEMBER size_t spread_one(const Scene& scene, const Tile& patch, int entry, size_t end) {
        const int at = entries[entry].slot;
        const Range box = box_of(scene, at, patch), cells = cells_of(box);
        const Projected& p = scene.projected[at];
        const float center_x = p.center_x - (float)patch.x0, center_y = p.center_y - (float)patch.y0;
        const float low_pass = scene.flags[at] ? p.inverse_depth * kNearer : 0;
        Part columns[kPatchCells];
        for (int x = cells.x0; x < cells.x1; ++x) columns[x] = Part(box.x0, box.x1, x, center_x, p.gx);
        for (int y = cells.y0; y < cells.y1; ++y) {
            const Part row(box.y0, box.y1, y, center_y, p.gy);
            for (int x = cells.x0; x < cells.x1; ++x) {
                const Part& column = columns[x];
                float t = 1 + p.gx * column.middle + p.gy * row.middle, nearest = scene.nearest[at];
                if constexpr (Surfels) {
                    const float rounding = 1e-5f * (1 + __builtin_fabsf(column.largest) + __builtin_fabsf(row.largest));
                    const float plane = p.inverse_depth * (1 + column.largest + row.largest + rounding);
                    nearest = std::min(nearest, std::max(plane, low_pass));
                    if (!(nearest > 0)) continue;
                } else {
                    t += ((p.hxx * column.middle + p.hxy * row.middle) * column.middle +
                          p.hyy * row.middle * row.middle) /
                         t;
                }
                const int step = (y * kPatchCells + x) * kLevels + level_of(nearest);
                ++steps_[step];
                step_of_[end] = step;
                unsorted_[end++] = {word_of(p.inverse_depth * t), entry};
            }
        }
        return end;
    }

    // True if there are fragments. Places are measured from the corner of the whole tile, and the same code is chosen,
    // as in the stochastic raster: depths must be equal bit by bit, or Gaussians that lie in one plane would have
    // another order here.
    template <bool Surfels>
    HUSH_MEMBER bool collect_from(const Scene& scene, const Camera& camera, const Tile& whole, int entry, float stop,
                                  const CellBlend& cell) {
        const int at = entries[entry].slot;
        const Footprint f = footprint(scene, camera, whole, at / kChunk, at % kChunk);
        const uint8_t flags = scene.flags[at];
        if (flags & kClipped) return collect<Surfels, Surfels, true>(f, entry, stop, cell);
        if (Surfels && (flags & kLowPass)) return collect<Surfels, Surfels, false>(f, entry, stop, cell);
        return collect<Surfels, false, false>(f, entry, stop, cell);
    }

    template <bool Surfels, bool LowPass, bool Clipped>
    __attribute__((noinline)) bool collect(const Footprint& f, int entry, float stop, const CellBlend& cell) {
        const f32x8 level = splat(f.p.log_opacity + kMaxLevel);
        const f32x8 log2_opacity = splat(f.p.log_opacity * kHalfLog2E);
        const CellRows<Surfels, LowPass, Clipped> rows(f, cell.y);
        const f32x8 dx = splat((float)cell.x + 0.5f - f.p.center_x) + iota();
        const Waiting none = {splat(0), splat(0), splat_int(entry_count)};
        bool found = false;
        for (unsigned lines = rows.needed(f, cell.x, level) & cell.open; lines; lines &= lines - 1) {
            const int row = __builtin_ctz(lines);
            const Fragment g = fragment<Surfels, LowPass, Clipped>(f, rows, row, dx);
            const f32x8 squared = g.q / g.s;
            i32x8 counts = (squared < level) & (cell.rest[row] >= splat(stop));
            if constexpr (Clipped) counts &= g.valid;
            if (!any(counts)) continue;
            found = true;
            const f32x8 alpha = exp2_negative(log2_opacity - squared * splat(kHalfLog2E));
            queues_[row].insert({g.inverse_depth, alpha, splat_int(entry)}, counts, none);
        }
        return found;
    }

    // Blends what is nearer than `bound`, and closes rows that are opaque then.
    template <class Visit>
    HUSH_MEMBER void settle(CellBlend& cell, float bound, float stop, Visit&& visit) {
        for (unsigned rows = cell.open; rows; rows &= rows - 1) {
            const int row = __builtin_ctz(rows);
            RowQueue& queue = queues_[row];
            if (queue.empty()) continue;
            f32x8 rest = cell.rest[row];
            for (; !queue.empty(); queue.pop()) {
                const Waiting& next = queue.front();
                const i32x8 open = rest >= splat(stop);
                if (any(open & (next.alpha > splat(0)) & (next.inverse_depth <= splat(bound)))) break;
                const f32x8 alpha = select(open, next.alpha, splat(0));
                visit(row, next, alpha, rest);
                rest = rest * (splat(1) - alpha);
            }
            cell.rest[row] = rest;
            if (!any(rest >= splat(stop))) cell.open &= ~(1u << row);
        }
    }
};

constexpr int kPatchesPerTile = (kTile / kPatch) * (kTile / kPatch);

// Patch `job` of the picture; its width or height is below 1 if it lies outside.
HUSH_INLINE Tile patch_at(const TileLists& lists, const Camera& camera, int job) {
    const Tile tile = tile_at(lists, camera, job / kPatchesPerTile);
    const int part = job % kPatchesPerTile, per_side = kTile / kPatch;
    const int dx = part % per_side * kPatch, dy = part / per_side * kPatch;
    return {tile.x0 + dx, tile.y0 + dy, std::min(tile.width - dx, kPatch), std::min(tile.height - dy, kPatch)};
}

}  // namespace
}  // namespace hush::HUSH_ISA
