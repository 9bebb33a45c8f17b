// Per-pixel order: every pixel's fragments sorted by their own depth and blended; also the variance of one random sample.
#include <algorithm>

#include "footprint.h"
#include "harmonics.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kPatch = 16;                  // px: side of the squares whose fragments are collected at a time
constexpr size_t kFragments = 1 << 19;      // room at first; when it is full, pixels drop what lies behind opaque ones
constexpr float kNothingLeft = 1e-8f;       // transmittance behind which a fragment cannot be told from none

struct Sample {
    float inverse_depth, alpha;
    int32_t id;     // ties in depth go to the smaller index, as in the stochastic raster
    int32_t pixel;  // y · kPatch + x
};

bool before(const Sample& a, const Sample& b) {
    if (a.pixel != b.pixel) return a.pixel < b.pixel;
    if (a.inverse_depth != b.inverse_depth) return a.inverse_depth > b.inverse_depth;
    return a.id < b.id;
}

struct Patch {
    Buffer<Sample> samples, scratch;
    size_t count = 0, capacity = 0;
    float cut[kPatch * kPatch];  // 1 / depth behind which a pixel takes nothing more

    void clear() {
        if (!capacity) grow(kFragments);
        count = 0;
        for (float& c : cut) c = 0;
    }

    void grow(size_t size) {
        Buffer<Sample> larger(size);
        if (count) std::memcpy(larger.get(), samples.get(), count * sizeof(Sample));
        std::swap(samples, larger);
        scratch.resize(size);
        capacity = size;
    }

    // Room for one more Gaussian. Alphas are at least 1/255, so a pixel is opaque after 4700 of them: this ends.
    void make_room() {
        if (count + kPatch * kPatch <= capacity) return;
        compact();
        if (count > capacity / 2) grow(2 * capacity);
    }

    // By pixel (counting), then by depth inside each pixel.
    void sort() {
        size_t begin[kPatch * kPatch + 1] = {};
        for (size_t k = 0; k < count; ++k) ++begin[samples[k].pixel + 1];
        for (int p = 0; p < kPatch * kPatch; ++p) begin[p + 1] += begin[p];
        size_t cursor[kPatch * kPatch];
        std::memcpy(cursor, begin, sizeof cursor);
        for (size_t k = 0; k < count; ++k) scratch[cursor[samples[k].pixel]++] = samples[k];
        for (int p = 0; p < kPatch * kPatch; ++p) std::sort(scratch.get() + begin[p], scratch.get() + begin[p + 1], before);
        std::swap(samples, scratch);
    }

    // Sorts, and drops what lies behind the point where a pixel became opaque.
    void compact() {
        sort();
        size_t kept = 0;
        int pixel = -1;
        float rest = 1;
        for (size_t k = 0; k < count; ++k) {
            const Sample s = samples[k];
            if (s.pixel != pixel) pixel = s.pixel, rest = 1;
            if (rest < kNothingLeft) continue;
            rest *= 1 - s.alpha;
            if (rest < kNothingLeft) cut[pixel] = s.inverse_depth;
            samples[kept++] = s;
        }
        count = kept;
    }
};

template <bool Surfels, bool LowPass, bool Clipped>
void collect(Patch& patch, const Footprint& f, int left_px, int top_px, int32_t id) {
    patch.make_room();
    const float opacity = __builtin_expf(0.5f * f.p.log_opacity);
    const f8 level = splat(f.p.log_opacity + kMaxLevel);
    for (int y = f.y0 & -kCell; y < f.y1; y += kCell) {
        const CellRows<Surfels, LowPass, Clipped> rows(f, y);
        for (int x = f.x0 & -kCell; x < f.x1; x += kCell) {
            const f8 dx = splat((float)x + 0.5f - f.p.center_x) + iota();
            for (unsigned lines = rows.needed(f, x, level); lines; lines &= lines - 1) {
                const int row = __builtin_ctz(lines);
                Fragment g = fragment<Surfels, LowPass, Clipped>(f, rows, row, dx);
                f8 squared = g.q / g.s;
                unsigned left = bits((squared < level) & g.valid) & (f.x1 - x >= 8 ? 0xffu : (1u << (f.x1 - x)) - 1);
                for (; left; left &= left - 1) {
                    int lane = __builtin_ctz(left), pixel = (y + row - top_px) * kPatch + x + lane - left_px;
                    if (g.inverse_depth[lane] < patch.cut[pixel]) continue;
                    patch.samples[patch.count++] = {g.inverse_depth[lane], opacity * __builtin_expf(-0.5f * squared[lane]), id, pixel};
                }
            }
        }
    }
}

void resolve(Patch& patch, const Tile& tile, const Camera& camera, const Colors& colors, const SortedOutput& out) {
    patch.sort();
    size_t k = 0;
    for (int y = 0; y < tile.height; ++y)
        for (int x = 0; x < tile.width; ++x) {
            float rest = 1, weights = 0, depth = 0;
            f4 mean = {0, 0, 0, 0}, square = {0, 0, 0, 0};
            for (; k < patch.count && patch.samples[k].pixel == y * kPatch + x; ++k) {
                const Sample& s = patch.samples[k];
                if (rest < kNothingLeft) continue;
                const float weight = rest * s.alpha;
                const f4 rgb = color_of(colors, camera.eye, s.id);
                mean += weight * rgb;
                square += weight * rgb * rgb;
                depth += weight / s.inverse_depth;
                weights += weight;
                rest *= 1 - s.alpha;
            }
            const size_t pixel = (size_t)(tile.y0 + y) * camera.width + tile.x0 + x;
            for (int c = 0; c < 3; ++c) {
                const float color = mean[c] + rest * out.background[c];
                out.color[3 * pixel + c] = color;
                const float second = square[c] + rest * out.background[c] * out.background[c];
                const float variance = second - color * color;
                if (out.variance) out.variance[3 * pixel + c] = variance > 0 ? variance : 0;
            }
            out.alpha[pixel] = 1 - rest;
            if (out.depth) out.depth[pixel] = weights > 0 ? depth / weights : 0;
        }
}

template <bool Surfels>
void draw_patch(Scene& scene, const Camera& camera, const TileLists& lists, int index, const Tile& tile,
                const Colors& colors, const SortedOutput& out) {
    static thread_local Patch patch;
    patch.clear();
    // Places are measured from the corner of the whole tile, and the same code is chosen, as in the stochastic raster:
    // depths must be equal bit by bit, or Gaussians that lie in one plane would have another order here.
    const Tile whole = tile_at(lists, camera, index);
    const int left = tile.x0 - whole.x0, top = tile.y0 - whole.y0;
    for (int entry = lists.begin[index]; entry < lists.begin[index + 1]; ++entry) {
        const int chunk = lists.chunk[entry];
        ensure_projected(scene, camera, chunk);
        each_in_tile(scene, chunk, tile, [&](int slot) {
            Footprint f = footprint(scene, camera, whole, chunk, slot);
            f.x0 = std::max(f.x0, left), f.x1 = std::min(f.x1, left + tile.width);
            f.y0 = std::max(f.y0, top), f.y1 = std::min(f.y1, top + tile.height);
            const int32_t id = scene.id[(size_t)chunk * kChunk + slot];
            const uint8_t flags = scene.flags[(size_t)chunk * kChunk + slot];
            if (flags & kClipped) collect<Surfels, Surfels, true>(patch, f, left, top, id);
            else if (Surfels && (flags & kLowPass)) collect<Surfels, Surfels, false>(patch, f, left, top, id);
            else collect<Surfels, false, false>(patch, f, left, top, id);
        });
    }
    resolve(patch, tile, camera, colors, out);
}

}  // namespace

void ordered(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
             const SortedOutput& out) {
    const int per_side = kTile / kPatch;
    parallel_for(lists.columns * lists.rows * per_side * per_side, threads, [&](int job) {
        const int index = job / (per_side * per_side), part = job % (per_side * per_side);
        Tile tile = tile_at(lists, camera, index);
        const int dx = part % per_side * kPatch, dy = part / per_side * kPatch;
        const int width = tile.width - dx, height = tile.height - dy;
        if (width <= 0 || height <= 0) return;
        tile = {tile.x0 + dx, tile.y0 + dy, width < kPatch ? width : kPatch, height < kPatch ? height : kPatch};
        (scene.surfels ? draw_patch<true> : draw_patch<false>)(scene, camera, lists, index, tile, colors, out);
    });
}

}  // namespace hush::HUSH_ISA
