// Stochastic raster: a fragment is kept if D² lies below its random level, the nearest kept one wins the pixel. Nearest
// by the fragment's own depth, or by the depth of its Gaussian's centre.
#include <cmath>

#include "active_set.h"
#include "footprint.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

HUSH_INLINE uint32_t mix32(uint32_t x) {  // as spec/sampling.py
    x ^= x >> 16;
    x *= 0x7feb352du;
    x ^= x >> 15;
    x *= 0x846ca68bu;
    return x ^ x >> 16;
}

constexpr int kRows = kTile * kTile / kCell;                             // of eight pixels, in a tile
constexpr int kRowsAcross = kCells * kCell;                              // rows of a line of cells
constexpr int left_of(int row) { return row / kCell % kCells * kCell; }  // px, of a row's first pixel in the tile
constexpr int top_of(int row) { return row / (kCell * kCells) * kCell + row % kCell; }

constexpr uint32_t inverse_of(uint32_t odd) {  // modulo 2^32
    uint32_t r = odd;
    for (int k = 0; k < 5; ++k) r *= 2 - odd * r;
    return r;
}

// The table of levels; and the largest of each run of eight entries, in the order of pixels below each other, so that
// what the eight rows of a cell can reach at all is one load.
struct Levels {
    alignas(64) float level[kTable + 8];
    alignas(64) float most[kTable + 8];

    void fill(const float* table) {
        for (int k = 0; k < kTable + 8; ++k) level[k] = table[k % kTable];
        for (int j = 0; j < kTable + 8; ++j) {
            const float* run = level + (uint32_t)j * kRowStep % kTable;
            float m = run[0];
            for (int k = 1; k < 8; ++k) m = run[k] > m ? run[k] : m;
            most[j] = m;
        }
    }

    HUSH_MEMBER f32x8 row(uint32_t first) const { return load(level + (first & (kTable - 1))); }
    HUSH_MEMBER f32x8 reach(uint32_t place) const { return load(most + (place & (kTable - 1))); }

    // Where `reach` of a table entry is, and steps from there to the cell on the right and to the one below.
    static constexpr uint32_t place_of(uint32_t first) { return first * inverse_of(kRowStep); }
    static constexpr uint32_t kRight = kCell * inverse_of(kRowStep), kDown = kCell;
};

// Eight pixels of a cell: nearest 1/z and who holds it. One cache line.
struct alignas(64) PixelRow {
    float inverse_depth[kCell];
    int32_t id[kCell];
};

// The buffers of a tile, rows of eight pixels in cells of eight rows: row r of cell c is number 8 c + r. `shown` is
// 1/z of the fragment itself where centres are compared; `row`, `cell` and `farthest` are the least 1/z of each row of
// each cell, of each cell, and of the tile, as of the last update.
struct TileBuffers {
    PixelRow pixels[kRows];
    alignas(64) float shown[kRows][kCell];
    alignas(64) float row[kCells * kCells][kCell];
    alignas(64) float cell[kCells * kCells];
    float farthest;
    uint64_t touched;  // cells that changed since `cell` was last brought up to date

    void clear(const Tile& tile) {
        const float never = 3e38f;  // pixels outside the picture are never won and hide nothing
        for (int number = 0; number < kRows; ++number) {
            i32x8 inside =
                iota_int() + splat_int(left_of(number)) < splat_int(top_of(number) < tile.height ? tile.width : 0);
            store(pixels[number].inverse_depth, select(inside, splat(0), splat(never)));
            store(pixels[number].id, splat_int(-1));
        }
        touched = ~0ull;
        update_farthest();
    }

    void update_farthest() {
        if (!touched) return;
        for (uint64_t left = touched; left; left &= left - 1) {
            int index = __builtin_ctzll(left);
            f32x8 rows[kCell];
            for (int y = 0; y < kCell; ++y) rows[y] = load(pixels[index * kCell + y].inverse_depth);
            f32x8 least = row_minima(rows);
            store(row[index], least);
            cell[index] = horizontal_min(least);
        }
        touched = 0;
        f32x8 least = load(cell);
        for (int row = 1; row < kCells; ++row) least = min(least, load(cell + row * kCells));
        farthest = horizontal_min(least);
    }

    // Whether nothing of a chunk can be seen: all cells of the tile that it can touch are nearer, as of the last
    // update.
    bool hides(const ChunkBox& box, float inverse_near, const Tile& tile) const {
        auto first = [](int v) { return v > 0 ? v / kCell : 0; };
        auto last = [](int v) { return v < kTile ? (v - 1) / kCell : kCells - 1; };
        for (int y = first(box.y0 - tile.y0); y <= last(box.y1 - tile.y0); ++y)
            for (int x = first(box.x0 - tile.x0); x <= last(box.x1 - tile.x0); ++x)
                if (cell[y * kCells + x] < inverse_near) return false;
        return true;
    }
};

struct SetBits {  // which bits of a byte are set, one after the other
    int16_t index[256][8] = {};
    constexpr SetBits() {
        for (int mask = 0; mask < 256; ++mask)
            for (int bit = 0, at = 0; bit < 8; ++bit)
                if (mask >> bit & 1) index[mask][at++] = (int16_t)bit;
    }
};
constexpr SetBits kSetBits;

// Of each row of a tile: the centre of its first pixel, px, and its table entry counted from the tile's first pixel.
struct RowPlaces {
    struct {
        float x;
        uint32_t entry;
    } of[kRows] = {};
    constexpr RowPlaces() {
        for (int row = 0; row < kRows; ++row) {
            of[row].x = (float)left_of(row) + 0.5f;
            of[row].entry = (uint32_t)(kRowStep * top_of(row) + left_of(row));
        }
    }
};
constexpr RowPlaces kRowPlaces;

// Numbers of the rows of a footprint that can keep anything, cell by cell. Rows are appended without a branch: which
// ones are needed is as good as random, and a mispredicted branch costs more than a row.
// Returns how many there are with those of another cell.
HUSH_INLINE int append(int16_t* numbers, int count, int cell, unsigned rows) {
    store(numbers + count, i16x8{} + (int16_t)(cell * kCell) + load_as<i16x8>(kSetBits.index[rows]));
    return count + __builtin_popcount(rows);
}

// `first` is the table entry of the tile's first pixel.
template <bool Surfels, bool LowPass, bool Clipped, Order By>
__attribute__((noinline)) void draw(TileBuffers& buffers, const Levels& levels, const Footprint& f, uint32_t first,
                                    int32_t id) {
    using Rows = CellRows<Surfels, LowPass, Clipped>;
    const f32x8 log_opacity = splat(f.p.log_opacity);
    const float nearest = By == Order::center ? f.p.inverse_depth * kNearer : f.nearest;
    alignas(Rows) unsigned char memory[kCells * sizeof(Rows)];
    Rows* lines = reinterpret_cast<Rows*>(memory);
    int16_t numbers[kRows + kCell];
    int count = 0;
    const int left = f.x0 & -kCell, top = f.y0 & -kCell;
    uint32_t line = Levels::place_of(first + (uint32_t)(kRowStep * top + left));
    for (int y = top; y < f.y1; y += kCell, line += Levels::kDown) {
        const Rows& rows = *new (lines + (unsigned)y / kCell) Rows(f, y);
        int cell = y + (int)((unsigned)left / kCell);
        uint32_t place = line;
        for (int x = left; x < f.x1; x += kCell, ++cell, place += Levels::kRight) {
            const unsigned needed =
                rows.needed(f, x, levels.reach(place) + log_opacity) & bits(load(buffers.row[cell]) < splat(nearest));
            count = append(numbers, count, cell, needed);
        }
    }
    const i32x8 id8 = splat_int(id);
    uint64_t touched = 0;
    for (int k = 0; k < count; ++k) {
        const unsigned number = (uint16_t)numbers[k];
        const auto& place = kRowPlaces.of[number];
        PixelRow& pixels = buffers.pixels[number];
        const f32x8 dx = splat(place.x - f.p.center_x) + iota();
        Fragment g = fragment<Surfels, LowPass, Clipped>(f, lines[number / kRowsAcross], number % kCell, dx);
        f32x8 random = levels.row(first + place.entry) + log_opacity;
        const f32x8 compared = By == Order::center ? splat(f.p.inverse_depth) : g.inverse_depth;
        f32x8 z = load(pixels.inverse_depth);
        const i32x8 holder = load(pixels.id);
        // Of two at one depth the smaller index wins, in whatever order they are drawn.
        i32x8 kept = (g.q < random * g.s) & ((compared > z) | ((compared == z) & (id8 < holder)));
        if constexpr (Clipped) kept &= g.valid;
        store(pixels.inverse_depth, select(kept, compared, z));
        if constexpr (By == Order::center)
            store(buffers.shown[number], select(kept, g.inverse_depth, load(buffers.shown[number])));
        store(pixels.id, select(kept, id8, holder));
        touched |= (uint64_t)any(kept) << (number / kCell);
    }
    buffers.touched |= touched;
}

HUSH_INLINE uint32_t anchor(float center) {                           // the pixel of the centre, as spec/sampling.py
    center = center > -1e6f ? center < 1e6f ? center : 1e6f : -1e6f;  // so that NaN becomes a number
    return (uint32_t)(int32_t)std::floor(center);
}

// What a pixel remembers of its winner: its index in the file, or the slot it is kept in.
enum Winner { kId, kSlot };

// What of a Gaussian a tile needs to draw it, side by side in one cache line.
struct alignas(64) Waiting {
    Projected p;   // centre relative to the tile
    int32_t name;  // as pixels remember it
    int32_t chunk;
    uint32_t first;                                      // table entry of the tile's first pixel
    uint32_t x0 : 7, x1 : 7, y0 : 7, y1 : 7, flags : 2;  // px, relative to the tile, clipped to it
};
static_assert(sizeof(Waiting) == 64, "one cache line");

// Gaussians of a few chunks, to be drawn roughly front to back: the sooner the nearest ones are drawn, the more of the
// others is hidden. The order never changes what is seen, only what it costs.
struct Batch {
    static constexpr int kWanted = 1024, kBuckets = 128;
    Waiting waiting[kWanted + kChunk];
    float nearness[kWanted + kChunk];  // largest 1 / depth of the footprint
    uint16_t ordered[kWanted + kChunk];
    int count = 0;

    template <Winner Named>
    HUSH_MEMBER void add(const Scene& scene, const Tile& tile, uint32_t sequence, int chunk, int place) {
        const size_t at = (size_t)chunk * kChunk + place;
        const Projected& whole = scene.projected[at];
        Waiting& w = waiting[count];
        w.p = whole;  // and parts of it anew, none of which is read before it is drawn: that would wait for the stores
        w.p.center_x = whole.center_x - (float)tile.x0;
        w.p.center_y = whole.center_y - (float)tile.y0;
        w.name = Named == kId ? scene.id[at] : (int32_t)at;
        w.chunk = chunk;
        // Anchored in the picture: the centre is rounded otherwise in the tile.
        w.first = mix32((uint32_t)scene.id[at] ^ sequence) + (uint32_t)tile.x0 - anchor(whole.center_x) +
                  (uint32_t)kRowStep * ((uint32_t)tile.y0 - anchor(whole.center_y));
        const TileBox box = box_in_tile(scene, tile, chunk, place);
        w.x0 = (uint32_t)box.x0, w.x1 = (uint32_t)box.x1, w.y0 = (uint32_t)box.y0, w.y1 = (uint32_t)box.y1;
        w.flags = scene.flags[at];
        nearness[count++] = scene.nearest[at];
    }

    void sort() {
        float low = nearness[0], high = nearness[0];
        for (int k = 1; k < count; ++k) {
            low = nearness[k] < low ? nearness[k] : low;
            high = nearness[k] > high ? nearness[k] : high;
        }
        const float scale = high > low ? (kBuckets - 1) / (high - low) : 0;
        uint8_t bucket[kWanted + kChunk];
        int begin[kBuckets + 1] = {};
        for (int k = 0; k < count; ++k) {
            const float at = (high - nearness[k]) * scale;
            bucket[k] = at < kBuckets ? (uint8_t)at : 0;  // NaN where the nearest is infinitely near
            ++begin[bucket[k] + 1];
        }
        for (int k = 0; k < kBuckets; ++k) begin[k + 1] += begin[k];
        for (int k = 0; k < count; ++k) ordered[begin[bucket[k]]++] = (uint16_t)k;
    }
};

template <bool Surfels, Order By>
HUSH_INLINE void draw_one(Scene& scene, const Camera& camera, const Levels& levels, const Waiting& w, float nearest,
                          TileBuffers& buffers) {
    const Footprint f = {w.p, nearest, camera.near, (int)w.x0, (int)w.x1, (int)w.y0, (int)w.y1};
    const uint64_t before = buffers.touched;
    buffers.touched = 0;
    if (w.flags & kClipped)
        draw<Surfels, Surfels, true, By>(buffers, levels, f, w.first, w.name);
    else if (Surfels && (w.flags & kLowPass))
        draw<Surfels, Surfels, false, By>(buffers, levels, f, w.first, w.name);
    else
        draw<Surfels, false, false, By>(buffers, levels, f, w.first, w.name);
    uint8_t* won = &scene.won[w.chunk];
    if (buffers.touched && !(__atomic_load_n(won, __ATOMIC_RELAXED) & 2)) __atomic_fetch_or(won, 2, __ATOMIC_RELAXED);
    buffers.touched |= before;
}

// Chunks that won pixels in the last frame come first: most of what the others could touch is hidden then, and they
// need not be projected. What is seen does not depend on it.
template <bool Surfels, Winner Named, Order By>
__attribute__((noinline)) void draw_tile(Scene& scene, const Camera& camera, const TileLists& lists, int index,
                                         const Levels& levels, uint32_t sequence, TileBuffers& buffers) {
    const Tile tile = tile_at(lists, camera, index);
    buffers.clear(tile);
    Batch batch;
    const size_t all = lists.begin[index + 1] - lists.begin[index];
    for (size_t step = 0; step < 2 * all;) {  // the winners of the last frame, then the others
        batch.count = 0;
        for (; step < 2 * all && batch.count < Batch::kWanted; ++step) {
            const bool again = step < all;
            const int chunk = lists.chunk[lists.begin[index] + (again ? step : step - all)];
            if (lists.inverse_near[chunk] <= buffers.farthest) {  // this one and all behind it are hidden
                step = again ? all - 1 : 2 * all;
                continue;
            }
            if (again != (__atomic_load_n(&scene.won[chunk], __ATOMIC_RELAXED) & 1)) continue;
            if (buffers.hides(lists.box[chunk], lists.inverse_near[chunk], tile)) continue;
            ensure_projected(scene, camera, chunk);
            if (scene.reach[chunk].nearest <= buffers.farthest) continue;
            each_in_tile(scene, chunk, tile, [&](int slot) {
                if (scene.nearest[chunk * kChunk + slot] > buffers.farthest)
                    batch.add<Named>(scene, tile, sequence, chunk, slot);
            });
        }
        if (!batch.count) continue;
        batch.sort();
        for (int k = 0; k < batch.count; ++k) {
            const int next = batch.ordered[k];
            if (batch.nearness[next] <= buffers.farthest) continue;
            draw_one<Surfels, By>(scene, camera, levels, batch.waiting[next], batch.nearness[next], buffers);
            if (k % 32 == 31) buffers.update_farthest();
        }
        buffers.update_farthest();
    }
}

void write_tile(const TileBuffers& buffers, Order by, const Tile& tile, int width, int32_t* id, float* depth) {
    for (int y = 0; y < tile.height; ++y)
        for (int x = 0; x < tile.width; x += kCell) {
            const int row = (y / kCell * kCells + x / kCell) * kCell + y % kCell;
            const size_t out = (size_t)(tile.y0 + y) * width + tile.x0 + x;
            const f32x8 nearest = load(buffers.pixels[row].inverse_depth);
            const f32x8 shown = by == Order::center ? load(buffers.shown[row]) : nearest;
            const f32x8 z = select(nearest > splat(0), splat(1) / shown, splat(0));
            const i32x8 winners = load(buffers.pixels[row].id);
            if (tile.width - x >= kCell) {
                store(id + out, winners);
                store(depth + out, z);
            } else {
                for (int k = 0; k < tile.width - x; ++k) id[out + k] = winners[k], depth[out + k] = z[k];
            }
        }
}

// Winners join the set; nearly all are in it already, and neighbours are often won by the same one.
void join_tile(const TileBuffers& buffers, uint64_t* members) {
    int32_t last = -1;
    for (const PixelRow& pixels : buffers.pixels)
        for (const int32_t slot : pixels.id) {
            if (slot == last || slot < 0) continue;  // pixels outside the picture have none
            last = slot;
            const uint64_t bit = 1ull << (slot & 63);
            uint64_t* word = members + (slot >> 6);
            if (!(__atomic_load_n(word, __ATOMIC_RELAXED) & bit)) __atomic_fetch_or(word, bit, __ATOMIC_RELAXED);
        }
}

}  // namespace

void stochastic(Scene& scene, const Camera& camera, const TileLists& lists, const float* levels,
                const uint32_t* sequence, int samples, Order by, int threads, int32_t* id, float* depth) {
    const size_t pixels = (size_t)camera.width * camera.height;
    Buffer<Levels> tables(samples);
    for (int s = 0; s < samples; ++s) tables[s].fill(levels + (size_t)s * kTable);
    for (int chunk = 0; chunk < scene.chunks; ++chunk) scene.won[chunk] >>= 1;
    auto* draw =
        scene.surfels
            ? (by == Order::center ? draw_tile<true, kId, Order::center> : draw_tile<true, kId, Order::pixel>)
            : (by == Order::center ? draw_tile<false, kId, Order::center> : draw_tile<false, kId, Order::pixel>);
    const int tiles = lists.columns * lists.rows;
    parallel_for(tiles, threads, [&](int index) {
        TileBuffers buffers;
        for (int s = 0; s < samples; ++s) {
            draw(scene, camera, lists, index, tables[s], sequence[s], buffers);
            write_tile(buffers, by, tile_at(lists, camera, index), camera.width, id + s * pixels, depth + s * pixels);
        }
    });
}

void discover(Scene& scene, const Camera& camera, const TileLists& lists, const RandomLevels& random,
              const uint8_t* samples, int threads, uint64_t* members) {
    Buffer<Levels> tables(random.samples);
    for (int s = 0; s < random.samples; ++s) tables[s].fill(random.levels + (size_t)s * kTable);
    std::vector<int> wanted;
    for (int index = 0; index < lists.columns * lists.rows; ++index)
        if (samples[index]) wanted.push_back(index);
    auto* draw = scene.surfels ? draw_tile<true, kSlot, Order::pixel> : draw_tile<false, kSlot, Order::pixel>;
    parallel_for((int)wanted.size(), threads, [&](int job) {
        TileBuffers buffers;
        const int index = wanted[job];
        for (int s = 0; s < samples[index]; ++s) {
            draw(scene, camera, lists, index, tables[s], random.sequence[s], buffers);
            join_tile(buffers, members);
        }
    });
}

}  // namespace hush::HUSH_ISA
