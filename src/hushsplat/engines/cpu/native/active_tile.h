// One tile of the active set: its members in the order of their centres' depth, who matters in which cell, the blend.
#pragma once

#include "active_records.h"

namespace hush::HUSH_ISA {

// Members of a frame, as the tiles find them.
struct Members {
    const Record* record;
    const PixelBox* box;
    const int32_t* slot;
    uint8_t* matters;
    const int32_t* id;  // by slot
};

struct TileJob {
    const Members& members;
    const Camera& camera;
    const ActiveSetSettings& settings;
    const SortedOutput& out;
    ActiveSet* next;
    bool surfels;
};

// Depth of the centre in the upper half, which orders; the member in the lower one.
using TileEntry = uint64_t;
HUSH_INLINE TileEntry tile_entry(float depth, uint32_t member) {
    uint32_t key;
    std::memcpy(&key, &depth, 4);
    return (uint64_t)key << 32 | member;
}
HUSH_INLINE float depth_of(TileEntry entry) {
    const uint32_t key = entry >> 32;
    float depth;
    std::memcpy(&depth, &key, 4);
    return depth;
}

inline void insertion_sort(TileEntry* entries, int n) {
    for (int i = 1; i < n; ++i) {
        const TileEntry e = entries[i];
        int j = i;
        for (; j && entries[j - 1] > e; --j) entries[j] = entries[j - 1];
        entries[j] = e;
    }
}

// By depth, in two passes over 16 bits of the tile's own range; what those leave is repaired by insertion.
inline void sort_by_depth(TileEntry* entries, TileEntry* scratch, int n) {
    if (n <= 24) return insertion_sort(entries, n);
    if (n <= 96) return std::sort(entries, entries + n);
    uint32_t low = ~0u, high = 0;
    for (int k = 0; k < n; ++k) {
        const uint32_t key = entries[k] >> 32;
        low = std::min(low, key);
        high = std::max(high, key);
    }
    const int width = 32 - __builtin_clz((high - low) | 1), shift = width > 16 ? width - 16 : 0;
    auto digit = [&](TileEntry e) { return ((uint32_t)(e >> 32) - low) >> shift; };
    uint32_t count[2][256] = {};
    for (int k = 0; k < n; ++k) {
        const uint32_t d = digit(entries[k]);
        ++count[0][d & 255];
        ++count[1][d >> 8];
    }
    for (auto& digits : count) {
        uint32_t sum = 0;
        for (uint32_t& c : digits) {
            const uint32_t here = c;
            c = sum;
            sum += here;
        }
    }
    for (int k = 0; k < n; ++k) scratch[count[0][digit(entries[k]) & 255]++] = entries[k];
    for (int k = 0; k < n; ++k) entries[count[1][digit(scratch[k]) >> 8]++] = scratch[k];
    insertion_sort(entries, n);
}

// Of equal depths the smaller index in the file comes first, as in the sorted raster.
inline void order_ties(const Members& members, TileEntry* entries, int n) {
    auto id = [&](TileEntry e) { return members.id[members.slot[(uint32_t)e]]; };
    for (int begin = 0, end; begin < n; begin = end) {
        for (end = begin + 1; end < n && entries[end] >> 32 == entries[begin] >> 32;) ++end;
        if (end - begin > 1)
            std::sort(entries + begin, entries + end, [&](TileEntry a, TileEntry b) { return id(a) < id(b); });
    }
}

constexpr int kBatch = 128;        // members of a tile that are listed, then blended, before the next
constexpr int kLanes = 32;         // members whose bits are turned from members to cells at once
constexpr float kFinished = 1e9f;  // log2 of an alpha that nothing has
// log2 of the alpha that counts in every cell that is not finished. Without it the last light of a cell would pass
// everyone whose weight is below `prune`, and what lies behind walls would be found and blended (ours; docs/hush.md).
constexpr float kAlwaysCounts = -4;

// Buffers of one worker.
struct TileScratch {
    Buffer<TileEntry> sorting;
    size_t most_entries = 0;
    Record record[kBatch];                           // the batch's own copies, in order
    float depth[kBatch];                             // of the centres
    alignas(32) uint8_t cells[kSetCells][kBatch];    // of each row of cells: in which of them a member matters
    uint32_t listed[kCellsInTile][kBatch / kLanes];  // of each cell: which members matter there, a bit each

    void reserve(size_t n) {
        if (n <= most_entries) return;
        most_entries = n + n / 2 + 64;
        sorting.resize(most_entries);
    }
};

// Largest S of the ray form in the cells of a row, whose corners are at dx `left`, `right` and dy `top`, `bottom`: S is
// convex, so that it is largest in a corner.
template <bool Surfels>
HUSH_INLINE f32x8 most_scale(const Record& r, f32x8 left, f32x8 right, float top, float bottom) {
    f32x8 most = splat(1e-6f);
    for (f32x8 dx : {left, right})
        for (float dy : {top, bottom}) {
            const f32x8 t = splat(r.form[0]) * dx + splat(r.form[1] * dy + 1);
            f32x8 s = t * t;
            if constexpr (!Surfels)
                s += (splat(r.form[2]) * dx + splat(r.form[3] * dy)) * dx + splat(r.form[4] * dy * dy);
            most = max(most, s);
        }
    return most * splat(1.0002f);
}

// The cells of a tile in which alpha can reach `need`; never one too few.
template <bool Surfels>
HUSH_INLINE uint64_t cells_that_matter(const Record& r, const PixelBox& box, int x0, int y0, const float* need) {
    const int column0 = std::max((box.x0 - x0) >> 2, 0), column1 = std::min((box.x1 - 1 - x0) >> 2, kSetCells - 1);
    const int row0 = std::max((box.y0 - y0) >> 2, 0), row1 = std::min((box.y1 - 1 - y0) >> 2, kSetCells - 1);
    const uint64_t columns = (255u << column0) & (255u >> (kSetCells - 1 - column1));
    const f32x8 left = iota() * splat(kSetCell) + splat((float)x0 + 0.5f - r.x), right = left + splat(kSetCell - 1);
    const bool is_ray = r.is_ray();
    const f32x8 low_pass = splat(is_ray ? kLowPassLevel : r.form[2]), log_opacity = splat(r.log_opacity);
    const f32x8 across = max(max(left, -right), splat(0));  // from the centre to the column
    float top = (float)(y0 + kSetCell * row0) + 0.5f - r.y;
    uint64_t found = 0;
    for (int row = row0; row <= row1; ++row, top += kSetCell) {
        // Along the rows of a cell the place of least Q moves from `begin` to `end`: outside of both no row is nearer.
        const float bottom = top + (kSetCell - 1), begin = r.slope * top, end = r.slope * bottom;
        const float low = begin < end ? begin : end, high = begin < end ? end : begin;
        const float down = top > 0 ? top : bottom < 0 ? -bottom : 0, v = r.vy * down;
        const f32x8 u = max(max(left - splat(high), splat(low) - right), splat(0)) * splat(r.ux);
        f32x8 q = u * u + splat(v * v);
        if (is_ray) q = q / most_scale<Surfels>(r, left, right, top, bottom);
        if constexpr (Surfels) q = min(q, low_pass * (across * across + splat(down * down)));
        found |= (uint64_t)bits(log_opacity - q >= load(need + kSetCells * row)) << (kSetCells * row);
    }
    return found & columns * 0x0101010101010101ull;
}

// Constants of the inner loop stay in memory: the registers are for the sums.
struct AlphaConstants {
    alignas(32) float round[8], c3[8], c2[8], c1[8], one[8], least[8];
    AlphaConstants() {
        for (int k = 0; k < 8; ++k) {
            round[k] = 12582912.f;  // 1.5 · 2^23: rounds to the nearest integer in the low bits
            c3[k] = 0.0558014f, c2[k] = 0.2401535f, c1[k] = 0.6931362f, one[k] = 1;
            least[k] = kLeastLog2;
        }
    }
};

// 2^e, 0 below 1/255; relative error 1e-4.
HUSH_INLINE f32x8 alpha_of(f32x8 e, const AlphaConstants& c) {
    const f32x8 shifted = e + load(c.round), f = e - (shifted - load(c.round));
    f32x8 p = fma(f, load(c.c3), load(c.c2));
    p = fma(p, f, load(c.c1));
    p = fma(p, f, load(c.one));
    const i32x8 scaled = wrapping_sum(float_bits(p), float_bits(shifted) << 23);  // far below 1/255 it wraps
    return bits_to_float(scaled & (e > load(c.least)));
}

// Where a cell's pixels are, in memory for the same reason.
struct CellPlaces {
    alignas(32) float x[8], top[8], bottom[8];
};

// Two rows of four pixels. A cell has two of these; each is named, since what is indexed does not stay in registers.
struct HalfCell {
    f32x8 rest, red, green, blue, depth;
};
struct CellSums {
    HalfCell top, bottom;
};

// Exponents and depths of sixteen fragments by the ray form, as footprint.h has it.
template <bool Surfels>
HUSH_INLINE f32x8 ray_exponent(const Record& r, f32x8 dx, f32x8 dy, float near, f32x8* depth) {
    const f32x8 u = splat(r.ux) * dx + splat(r.uy) * dy, v = splat(r.vy) * dy, q = u * u + v * v;
    const f32x8 t = splat(r.form[0]) * dx + (splat(r.form[1]) * dy + splat(1));
    f32x8 s = t * t;
    if constexpr (!Surfels) s += (splat(r.form[2]) * dx + splat(r.form[3]) * dy) * dx + splat(r.form[4]) * dy * dy;
    const f32x8 far = Surfels ? splat(r.depth) / t : splat(r.depth) * t / s;
    const i32x8 valid = (t > splat(0)) & (s > splat(0)) & (far > splat(near));
    f32x8 least = select(valid, q / s, splat(1e9f));
    *depth = far;
    if constexpr (Surfels) {
        const f32x8 low = splat(kLowPassLevel) * (dx * dx + dy * dy);
        *depth = select(least <= low, far, splat(r.depth));
        least = min(least, low);
    } else {
        *depth = select(valid, far, splat(r.depth));
    }
    return splat(r.log_opacity) - least;
}

// Adds a member with these alphas to half a cell.
template <bool Depth>
HUSH_INLINE void add(const Record& r, f32x8 exponent, f32x8 depth, const AlphaConstants& c, HalfCell& sums) {
    const f32x8 weight = alpha_of(exponent, c) * sums.rest;
    sums.rest = sums.rest - weight;
    sums.red = fma(weight, splat(r.red), sums.red);
    sums.green = fma(weight, splat(r.green), sums.green);
    sums.blue = fma(weight, splat(r.blue), sums.blue);
    if constexpr (Depth) sums.depth = fma(weight, depth, sums.depth);
}

// One ellipse in half a cell, `dx` and `dy` from its pixels to the member: an ellipse is the same on both sides, and
// subtracting from the member leaves pixels in memory.
template <bool Surfels, bool Depth>
HUSH_INLINE void blend_half(const Record& r, f32x8 dx, f32x8 dy, const AlphaConstants& c, HalfCell& sums) {
    const f32x8 u = fma(dy, splat(r.uy), dx * splat(r.ux)), v = dy * splat(r.vy);
    f32x8 exponent, depth = splat(0);
    if constexpr (Surfels) {
        const f32x8 low = splat(r.form[2]) * fma(dx, dx, dy * dy);
        exponent = splat(r.log_opacity) - min(fma(u, u, v * v), low);
    } else {
        exponent = fma(-u, u, fma(-v, v, splat(r.log_opacity)));
    }
    if constexpr (Depth) depth = fma(-dy, splat(r.form[1]), fma(-dx, splat(r.form[0]), splat(r.depth)));
    add<Depth>(r, exponent, depth, c, sums);
}

template <bool Surfels, bool Depth>
HUSH_INLINE void blend(const Record& r, const CellPlaces& places, const AlphaConstants& c, HalfCell& top,
                       HalfCell& bottom) {
    const f32x8 dx = splat(r.x) - load(places.x), y = splat(r.y);
    blend_half<Surfels, Depth>(r, dx, y - load(places.top), c, top);
    blend_half<Surfels, Depth>(r, dx, y - load(places.bottom), c, bottom);
}

// A member that needs the ray form. Not inlined: these are few, and their registers would displace the sums.
template <bool Surfels, bool Depth>
__attribute__((noinline)) void blend_ray(const Record& r, const CellPlaces& places, float near, const AlphaConstants& c,
                                         CellSums& sums) {
    const f32x8 dx = load(places.x) - splat(r.x), y = splat(r.y);
    f32x8 depth;
    const f32x8 top = ray_exponent<Surfels>(r, dx, load(places.top) - y, near, &depth);
    add<Depth>(r, top, depth, c, sums.top);
    const f32x8 bottom = ray_exponent<Surfels>(r, dx, load(places.bottom) - y, near, &depth);
    add<Depth>(r, bottom, depth, c, sums.bottom);
}

// A finished cell shows what it has found so far: taking the rest for background would darken cell by cell.
HUSH_INLINE HalfCell finished(const HalfCell& sums) {
    const f32x8 scale = splat(1) / max(splat(1) - sums.rest, splat(0.5f));
    return {splat(0), sums.red * scale, sums.green * scale, sums.blue * scale, sums.depth * scale};
}

// At least log2 of a positive number, by no more than 0.09.
HUSH_INLINE float log2_above(float value) {
    int32_t word;
    std::memcpy(&word, &value, 4);
    return (float)word * 0x1p-23f - 126.9139f;
}

// A cell between two batches.
struct Cell {
    CellSums sums;
    CellPlaces places;
    int level = 0;                                        // of kProfileLevels: transmittance is still above it
    float passed[kProfileLevels] = {kUnknown, kUnknown};  // depths at which it fell below them
};

// What is the same for all cells of a tile.
struct BlendJob {
    float near, stop, log2_prune;
    AlphaConstants constants;
};

// The members whose bits are set, one after the other.
class Listed {
public:
    HUSH_MEMBER explicit Listed(const uint32_t* bits) {
        std::memcpy(left_, bits, sizeof left_);
        first_ = left_[0] ? 0 : 64;
        word_ = left_[0] ? left_[0] : left_[1];
    }
    HUSH_MEMBER bool empty() const { return !word_; }
    HUSH_MEMBER int take() {
        const int found = first_ + __builtin_ctzll(word_);
        word_ &= word_ - 1;
        if (!word_ && !first_) word_ = left_[1], first_ = 64;
        return found;
    }

private:
    uint64_t left_[2], word_;
    int first_;
};
static_assert(kBatch == 128, "two words of bits");

// A batch of a cell, front to back until the cell is finished. Returns log2 of the least alpha that counts afterwards.
template <bool Surfels, bool Depth>
__attribute__((noinline)) float blend_list(const BlendJob& job, const Record* record, const float* depth, Listed listed,
                                           Cell& cell) {
    HalfCell top = cell.sums.top, bottom = cell.sums.bottom;
    float rest = 1;
    while (!listed.empty()) {
        int last = 0;
        for (int k = 0; k < 8 && !listed.empty(); ++k) {
            const Record& r = record[last = listed.take()];
            if (__builtin_expect(r.is_ray(), 0)) {
                cell.sums = {top, bottom};
                blend_ray<Surfels, Depth>(r, cell.places, job.near, job.constants, cell.sums);
                top = cell.sums.top, bottom = cell.sums.bottom;
                continue;
            }
            asm volatile("" ::: "memory");  // keeps records and constants in memory, see AlphaConstants
            blend<Surfels, Depth>(r, cell.places, job.constants, top, bottom);
        }
        rest = horizontal_max(max(top.rest, bottom.rest));
        if (cell.level == 0 && rest <= kHalf) cell.passed[cell.level++] = depth[last];
        if (rest <= job.stop) {
            cell.passed[1] = depth[last];
            cell.sums = {finished(top), finished(bottom)};
            return kFinished;
        }
    }
    cell.sums = {top, bottom};
    return std::max(std::min(job.log2_prune - log2_above(rest), kAlwaysCounts), kLeastLog2);
}

// Four pixels of a row: colour over the background, alpha, mean depth.
HUSH_INLINE void write_row(const SortedOutput& out, size_t pixel, f32x4 rest, f32x4 red, f32x4 green, f32x4 blue,
                           f32x4 depth) {
    const f32x4 r = red + rest * out.background[0], g = green + rest * out.background[1],
                b = blue + rest * out.background[2];
    const f32x4 rg = HUSH_SHUFFLE(r, g, 0, 4, 1, 5), rg2 = HUSH_SHUFFLE(r, g, 2, 6, 3, 7);
    const f32x4 middle = HUSH_SHUFFLE(rg, b, 3, 5, 3, 5);
    float* color = out.color + 3 * pixel;
    store_four(color, HUSH_SHUFFLE(rg, b, 0, 1, 4, 2));
    store_four(color + 4, HUSH_SHUFFLE(middle, rg2, 0, 1, 4, 5));
    store_four(color + 8, HUSH_SHUFFLE(rg2, b, 6, 2, 3, 7));
    const f32x4 one = {1, 1, 1, 1}, hit = one - rest;
    store_four(out.alpha + pixel, hit);
    if (!out.depth) return;
    const f32x4 zero = {0, 0, 0, 0}, mean = depth / hit;
    store_four(out.depth + pixel, hit > zero ? mean : zero);
}

HUSH_INLINE void write_half(const SortedOutput& out, int width, size_t pixel, const HalfCell& s) {
    write_row(out, pixel, low_half(s.rest), low_half(s.red), low_half(s.green), low_half(s.blue), low_half(s.depth));
    write_row(out, pixel + width, high_half(s.rest), high_half(s.red), high_half(s.green), high_half(s.blue),
              high_half(s.depth));
}

// The cell at the right or lower end of the picture, pixel by pixel.
inline void write_part(const SortedOutput& out, const Camera& camera, int x, int y, const CellSums& sums) {
    const int width = std::min(kSetCell, camera.width - x), height = std::min(kSetCell, camera.height - y);
    for (int row = 0; row < height; ++row)
        for (int column = 0; column < width; ++column) {
            const size_t pixel = (size_t)(y + row) * camera.width + x + column;
            const HalfCell& s = row < 2 ? sums.top : sums.bottom;
            const int lane = row % 2 * 4 + column;
            const float rest = s.rest[lane], hit = 1 - rest;
            out.color[3 * pixel] = s.red[lane] + rest * out.background[0];
            out.color[3 * pixel + 1] = s.green[lane] + rest * out.background[1];
            out.color[3 * pixel + 2] = s.blue[lane] + rest * out.background[2];
            out.alpha[pixel] = hit;
            if (out.depth) out.depth[pixel] = hit > 0 ? s.depth[lane] / hit : 0;
        }
}

inline void write_cell(const SortedOutput& out, const Camera& camera, int x, int y, const CellSums& sums) {
    if (x + kSetCell > camera.width || y + kSetCell > camera.height) return write_part(out, camera, x, y, sums);
    const size_t pixel = (size_t)y * camera.width + x;
    write_half(out, camera.width, pixel, sums.top);
    write_half(out, camera.width, pixel + 2 * (size_t)camera.width, sums.bottom);
}

// Lists a batch of the tile's members cell by cell; returns the number of pairs.
template <bool Surfels>
inline size_t list_cells(const Members& members, const TileEntry* entries, int n, int x0, int y0, const float* need,
                         TileScratch& scratch) {
    size_t pairs = 0;
    for (int k = 0; k < n; ++k) {
        if (k + 8 < n) {
            __builtin_prefetch(&members.record[(uint32_t)entries[k + 8]]);
            __builtin_prefetch(&members.box[(uint32_t)entries[k + 8]]);
        }
        const uint32_t member = (uint32_t)entries[k];
        const Record& r = scratch.record[k] = members.record[member];
        scratch.depth[k] = depth_of(entries[k]);
        const uint64_t cells = cells_that_matter<Surfels>(r, members.box[member], x0, y0, need);
        for (int row = 0; row < kSetCells; ++row) scratch.cells[row][k] = (uint8_t)(cells >> kSetCells * row);
        if (!cells) continue;
        __atomic_store_n(members.matters + member, 1, __ATOMIC_RELAXED);
        pairs += __builtin_popcountll(cells);
    }
    for (auto& row : scratch.cells) std::memset(row + n, 0, kBatch - n);
    for (int row = 0; row < kSetCells; ++row)
        for (int k = 0; k < kBatch; k += kLanes) {
            uint32_t columns[kSetCells];
            bit_columns(scratch.cells[row] + k, columns);
            for (int x = 0; x < kSetCells; ++x) scratch.listed[kSetCells * row + x][k / kLanes] = columns[x];
        }
    return pairs;
}

// Draws a tile of the picture and its profile for the next frame; returns the number of pairs of member and cell.
template <bool Surfels, bool Depth>
inline size_t draw_set_tile(const TileJob& job, int tile_x, int tile_y, TileEntry* entries, int n,
                            TileScratch& scratch) {
    const int x0 = tile_x * kSetTile, y0 = tile_y * kSetTile;
    scratch.reserve(n);
    sort_by_depth(entries, scratch.sorting.get(), n);
    order_ties(job.members, entries, n);

    const BlendJob blending = {job.camera.near, job.settings.stop, std::log2(job.settings.prune), {}};
    const f32x8 column = join(f32x4{0, 1, 2, 3}, f32x4{0, 1, 2, 3}), row = join(f32x4{0, 0, 0, 0}, f32x4{1, 1, 1, 1});
    Cell cells[kCellsInTile];
    alignas(32) float need[kCellsInTile];  // log2 of the least alpha that counts
    int open = 0;
    for (int index = 0; index < kCellsInTile; ++index) {
        Cell& cell = cells[index];
        const int x = x0 + index % kSetCells * kSetCell, y = y0 + index / kSetCells * kSetCell;
        const f32x8 px = column + splat((float)x + 0.5f), py = row + splat((float)y + 0.5f);
        store(cell.places.x, px);
        store(cell.places.top, py);
        store(cell.places.bottom, py + splat(2));
        const i32x8 left = px < splat((float)job.camera.width);  // pixels outside the picture are finished
        const f32x8 below = splat((float)job.camera.height), zero = splat(0);
        cell.sums = {{select(left & (py < below), splat(1), zero), zero, zero, zero, zero},
                     {select(left & (py + splat(2) < below), splat(1), zero), zero, zero, zero, zero}};
        const bool inside = x < job.camera.width && y < job.camera.height;
        if (!inside) cell.passed[0] = cell.passed[1] = 0;
        need[index] = inside ? std::max(blending.log2_prune, kLeastLog2) : kFinished;
        open += inside;
    }
    size_t pairs = 0;
    for (int first = 0; first < n && open; first += kBatch) {
        pairs += list_cells<Surfels>(job.members, entries + first, std::min(kBatch, n - first), x0, y0, need, scratch);
        for (int index = 0; index < kCellsInTile; ++index) {
            const Listed listed(scratch.listed[index]);
            if (listed.empty()) continue;
            need[index] = blend_list<Surfels, Depth>(blending, scratch.record, scratch.depth, listed, cells[index]);
            open -= need[index] == kFinished;
        }
    }
    for (int index = 0; index < kCellsInTile; ++index) {
        const int x = x0 + index % kSetCells * kSetCell, y = y0 + index / kSetCells * kSetCell;
        if (x < job.camera.width && y < job.camera.height) write_cell(job.out, job.camera, x, y, cells[index].sums);
        const size_t at = (size_t)(y / kSetCell) * job.next->cell_columns + x / kSetCell;
        for (int level = 0; level < kProfileLevels; ++level) job.next->plane(level)[at] = cells[index].passed[level];
    }
    return pairs;
}

}  // namespace hush::HUSH_ISA
