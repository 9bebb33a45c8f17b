// Per-pixel order, streamed: Gaussians come in the order of their nearest points, so that whatever lies before the nearest
// point of the next one can be blended already, and pixels that are opaque by then take nothing more.
#pragma once

#include <algorithm>

#include "footprint.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kPatch = 32;                 // px: side of the squares that are peeled at a time; divides kTile
constexpr int kPatchPixels = kPatch * kPatch;
constexpr int kPatchCells = kPatch / kCell;
constexpr int kBatch = 32;                 // ours, measured: Gaussians between two looks at what can be blended
constexpr int kRoom = 24;                  // fragments that may wait in a pixel at first
constexpr float kPeelHalfLog2E = 0.72134752044448170f;  // exp(-D²/2) = 2^(-D² · this); 2 ln(o) · this = log2(o)

struct PeelEntry {
    float nearest;  // largest 1 / depth in the footprint
    int32_t slot;   // chunk · kChunk + slot
    int32_t id;     // ties in depth go to the smaller index, as in the stochastic raster
};

// A fragment that is seen.
struct Peeled {
    float inverse_depth, alpha;
    int entry;  // index among the patch's entries
};

class Peeler {
public:
    Buffer<PeelEntry> entries;                  // of this patch, nearest first
    size_t entry_count = 0;
    alignas(64) float rest[kPatchPixels];       // transmittance in front of what waits

    // Lists the Gaussians of a patch of tile `index`.
    void list(Scene& scene, const Camera& camera, const TileLists& lists, int index, const Tile& patch) {
        entries.resize((size_t)(lists.begin[index + 1] - lists.begin[index]) * kChunk);
        size_t n = 0;
        for (int entry = lists.begin[index]; entry < lists.begin[index + 1]; ++entry) {
            const int chunk = lists.chunk[entry];
            ensure_projected(scene, camera, chunk);
            each_in_tile(scene, chunk, patch, [&](int slot) {
                const size_t at = (size_t)chunk * kChunk + slot;
                entries[n++] = {scene.nearest[at], (int32_t)at, scene.id[at]};
            });
        }
        entry_count = n;
        std::sort(entries.get(), entries.get() + n, [](const PeelEntry& a, const PeelEntry& b) {
            return a.nearest != b.nearest ? a.nearest > b.nearest : a.id < b.id;
        });
    }

    // Calls visit(pixel, peeled, rest) for every fragment that is seen, in each pixel front to back, and
    // meet(entry) once before an entry's first fragment may come.
    template <bool Surfels, class Meet, class Visit>
    void peel(const Scene& scene, const Camera& camera, const Tile& whole, const Tile& patch, float stop, Meet&& meet,
              Visit&& visit) {
        clear(patch);
        stop_ = stop;
        left_ = patch.x0 - whole.x0, top_ = patch.y0 - whole.y0;
        for (size_t k = 0; k < entry_count && open_; ++k) {
            if (k % kBatch == 0 && k) settle(touched_ & open_, entries[k].nearest, visit), touched_ = 0;
            // Places are measured from the corner of the whole tile, and the same code is chosen, as in the stochastic
            // raster: depths must be equal bit by bit, or Gaussians that lie in one plane would have another order here.
            const int at = entries[k].slot;
            Footprint f = footprint(scene, camera, whole, at / kChunk, at % kChunk);
            f.x0 = std::max(f.x0, left_), f.x1 = std::min(f.x1, left_ + patch.width);
            f.y0 = std::max(f.y0, top_), f.y1 = std::min(f.y1, top_ + patch.height);
            meet((int)k);
            const uint8_t flags = scene.flags[at];
            if (flags & kClipped) collect<Surfels, Surfels, true>(f, (int)k);
            else if (Surfels && (flags & kLowPass)) collect<Surfels, Surfels, false>(f, (int)k);
            else collect<Surfels, false, false>(f, (int)k);
        }
        settle(open_, 0, visit);
    }

private:
    // What waits in each pixel, nearest first: bits of 1 / depth above the entry's index, so that one comparison orders
    // them, and alphas beside; [pixel][room_].
    Buffer<uint64_t> keys_;
    Buffer<float> alphas_;
    int room_ = 0;
    int first_[kPatchPixels], end_[kPatchPixels];  // of what waits in each pixel
    uint32_t open_, touched_;                      // one bit per cell
    float stop_;
    int left_, top_;                               // of the patch in its tile

    void clear(const Tile& patch) {
        if (!room_) {
            room_ = kRoom;
            keys_.resize((size_t)kPatchPixels * room_);
            alphas_.resize((size_t)kPatchPixels * room_);
        }
        std::memset(first_, 0, sizeof first_);
        std::memset(end_, 0, sizeof end_);
        for (int y = 0; y < kPatch; ++y)
            for (int x = 0; x < kPatch; ++x) rest[y * kPatch + x] = x < patch.width && y < patch.height ? 1 : 0;
        open_ = touched_ = 0;
        for (int y = 0; y < patch.height; y += kCell)
            for (int x = 0; x < patch.width; x += kCell) open_ |= 1u << (y / kCell * kPatchCells + x / kCell);
    }

    static uint64_t key_of(float inverse_depth, int entry) {  // positive floats sort as integers
        uint32_t word;
        std::memcpy(&word, &inverse_depth, 4);
        return (uint64_t)word << 32 | (uint32_t)entry;
    }

    HUSH_MEMBER void insert(int pixel, uint64_t key, float alpha) {
        if (end_[pixel] == room_) make_room(pixel);
        const size_t base = (size_t)pixel * room_;
        uint64_t* keys = keys_.get() + base;
        float* alphas = alphas_.get() + base;
        int k = end_[pixel]++;
        for (const int first = first_[pixel]; k > first && key > keys[k - 1]; --k) {
            keys[k] = keys[k - 1];
            alphas[k] = alphas[k - 1];
        }
        keys[k] = key;
        alphas[k] = alpha;
    }

    __attribute__((noinline)) void make_room(int pixel) {
        const int first = first_[pixel], count = end_[pixel] - first;
        if (first > room_ / 2) {
            const size_t base = (size_t)pixel * room_;
            std::memmove(&keys_[base], &keys_[base + first], count * sizeof(uint64_t));
            std::memmove(&alphas_[base], &alphas_[base + first], count * sizeof(float));
            first_[pixel] = 0, end_[pixel] = count;
            return;
        }
        Buffer<uint64_t> keys((size_t)kPatchPixels * 2 * room_);
        Buffer<float> alphas((size_t)kPatchPixels * 2 * room_);
        for (size_t p = 0; p < kPatchPixels; ++p) {
            std::memcpy(&keys[p * 2 * room_], &keys_[p * room_], end_[p] * sizeof(uint64_t));
            std::memcpy(&alphas[p * 2 * room_], &alphas_[p * room_], end_[p] * sizeof(float));
        }
        std::swap(keys_, keys);
        std::swap(alphas_, alphas);
        room_ *= 2;
    }

    // Keys put the later entry first where depths are equal; the smaller index has to be.
    __attribute__((noinline)) void order_ties(uint64_t* keys, float* alphas, int end) const {
        int count = 1;
        while (count < end && keys[count] >> 32 == keys[0] >> 32) ++count;
        for (int i = 1; i < count; ++i)
            for (int k = i; k > 0 && entries[(uint32_t)keys[k]].id < entries[(uint32_t)keys[k - 1]].id; --k) {
                std::swap(keys[k], keys[k - 1]);
                std::swap(alphas[k], alphas[k - 1]);
            }
    }

    template <bool Surfels, bool LowPass, bool Clipped>
    __attribute__((noinline)) void collect(const Footprint& f, int entry) {
        const f8 level = splat(f.p.log_opacity + kMaxLevel);
        const f8 log2_opacity = splat(f.p.log_opacity * kPeelHalfLog2E);
        for (int y = f.y0 & -kCell; y < f.y1; y += kCell) {
            const CellRows<Surfels, LowPass, Clipped> rows(f, y);
            for (int x = f.x0 & -kCell; x < f.x1; x += kCell) {
                const uint32_t cell = 1u << ((y - top_) / kCell * kPatchCells + (x - left_) / kCell);
                if (!(open_ & cell)) continue;
                unsigned lines = rows.needed(f, x, level);
                if (!lines) continue;
                touched_ |= cell;
                const f8 dx = splat((float)x + 0.5f - f.p.center_x) + iota();
                for (; lines; lines &= lines - 1) {
                    const int row = __builtin_ctz(lines), at = (y + row - top_) * kPatch + x - left_;
                    Fragment g = fragment<Surfels, LowPass, Clipped>(f, rows, row, dx);
                    f8 squared = g.q / g.s;
                    i8 counts = (squared < level) & (load(rest + at) >= splat(stop_));
                    if constexpr (Clipped) counts &= g.valid;
                    unsigned lanes = bits(counts);
                    if (!lanes) continue;
                    alignas(32) float alphas[8], depths[8];
                    store(alphas, exp2_negative(log2_opacity - squared * splat(kPeelHalfLog2E)));
                    store(depths, g.inverse_depth);
                    for (; lanes; lanes &= lanes - 1) {
                        const int lane = __builtin_ctz(lanes);
                        insert(at + lane, key_of(depths[lane], entry), alphas[lane]);
                    }
                }
            }
        }
    }

    // Blends what is nearer than `bound` in these cells, and closes those that are opaque then.
    template <class Visit>
    void settle(uint32_t cells, float bound, Visit&& visit) {
        for (; cells; cells &= cells - 1) {
            const int cell = __builtin_ctz(cells);
            bool open = false;
            for (int y = 0; y < kCell; ++y)
                for (int x = 0; x < kCell; ++x)
                    open |= settle_pixel((cell / kPatchCells * kCell + y) * kPatch + cell % kPatchCells * kCell + x, bound, visit);
            if (!open) open_ &= ~(1u << cell);
        }
    }

    // True if the pixel is still open.
    template <class Visit>
    HUSH_MEMBER bool settle_pixel(int pixel, float bound, Visit&& visit) {
        const size_t base = (size_t)pixel * room_;
        uint64_t* keys = keys_.get() + base;
        float* alphas = alphas_.get() + base;
        const uint64_t least = key_of(bound, -1);
        const int end = end_[pixel];
        int first = first_[pixel], ordered = first;  // ties are in order up to here
        float left = rest[pixel];
        for (; first < end && keys[first] > least && left >= stop_; ++first) {
            if (first + 1 < end && first >= ordered && keys[first] >> 32 == keys[first + 1] >> 32) {
                order_ties(keys + first, alphas + first, end - first);
                ordered = first;
                while (ordered < end && keys[ordered] >> 32 == keys[first] >> 32) ++ordered;
            }
            const uint32_t word = keys[first] >> 32;
            Peeled peeled;
            std::memcpy(&peeled.inverse_depth, &word, 4);
            peeled.alpha = alphas[first];
            peeled.entry = (int)(uint32_t)keys[first];
            visit(pixel, peeled, left);
            left *= 1 - peeled.alpha;
        }
        rest[pixel] = left;
        const bool open = left >= stop_;
        if (!open || first == end) first = end_[pixel] = 0;
        first_[pixel] = first;
        return open;
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
