// Per-pixel order: every pixel's fragments sorted by their own depth and blended; also the variance of one random
// sample. Of all Gaussians, or of the members of an active set.
#include "active_set.h"
#include "harmonics.h"
#include "normals.h"
#include "pixel_order.h"
#include "threads.h"
#include "transpose.h"

namespace hush::HUSH_ISA {
namespace {

enum Wanted {
    kColors,
    kColorsAndGeometry,
    kMoments,  // variance and depth, for pictures that nobody learns from
    kMembers,  // depth, who matters, and how deep light reaches
};

struct Look {
    f32x4 rgb, normal;
};

// What a cell has blended so far, row by row.
struct CellSums {
    f32x8 color[3][8], square[3][8], weight[8];
    f32x8 geometry[kGeometry][8];
    f32x8 passed[kProfileLevels][8];  // depths at which transmittance fell below the levels of the profile
};

void write_cell(const CellBlend& cell, const CellSums& sums, const Tile& place, int width, const SortedOutput& out) {
    for (int y = 0; y < place.height; ++y)
        for (int x = 0; x < place.width; ++x) {
            const size_t pixel = (size_t)(place.y0 + y) * width + place.x0 + x;
            const float rest = cell.rest[y][x];
            for (int c = 0; c < 3; ++c) {
                const float color = sums.color[c][y][x] + rest * out.background[c];
                out.color[3 * pixel + c] = color;
                const float second = sums.square[c][y][x] + rest * out.background[c] * out.background[c];
                const float variance = second - color * color;
                if (out.variance) out.variance[3 * pixel + c] = variance > 0 ? variance : 0;
            }
            out.alpha[pixel] = 1 - rest;
            const float weight = sums.weight[y][x];
            if (out.depth) out.depth[pixel] = weight > 0 ? sums.geometry[0][y][x] / weight : 0;
            if (out.geometry)
                for (int c = 0; c < kGeometry; ++c) out.geometry[kGeometry * pixel + c] = sums.geometry[c][y][x];
        }
}

// Four floats of each of eight entries, channel by channel.
HUSH_INLINE void gather(const Look* looks, f32x4 Look::* part, const int32_t* entries, f32x8 channels[4]) {
    for (int k = 0; k < 4; ++k) channels[k] = join(looks[entries[k]].*part, looks[entries[k + 4]].*part);
    transpose_halves(channels);
}

template <Wanted Sums>
HUSH_INLINE void blend(CellSums& sums, int row, const Waiting& next, f32x8 alpha, f32x8 rest, const Look* looks) {
    alignas(32) int32_t entries[8];
    store(entries, next.entry);
    f32x8 rgb[4];
    gather(looks, &Look::rgb, entries, rgb);
    const f32x8 weight = rest * alpha;
    for (int c = 0; c < 3; ++c) {
        sums.color[c][row] = fma(weight, rgb[c], sums.color[c][row]);  // the same bits whatever else is wanted
        if constexpr (Sums == kMoments) sums.square[c][row] += weight * rgb[c] * rgb[c];
    }
    if constexpr (Sums == kColors) return;
    const f32x8 inverse = select(alpha > splat(0), next.inverse_depth, splat(1));
    sums.geometry[0][row] += weight / inverse;
    if constexpr (Sums == kMoments || Sums == kMembers) sums.weight[row] += weight;
    if constexpr (Sums == kColorsAndGeometry) {
        sums.geometry[1][row] += weight * inverse;
        sums.geometry[2][row] += weight * inverse * inverse;
        f32x8 normal[4];
        gather(looks, &Look::normal, entries, normal);
        for (int axis = 0; axis < 3; ++axis) sums.geometry[3 + axis][row] += weight * normal[axis];
    }
}

// What a patch has seen, until it is known how much it is.
class Records {
public:
    size_t count = 0;
    const FragmentRecord* get() const { return records_.get(); }

    // A row of eight pixels from `pixel` on; those with alpha 0 are left out.
    HUSH_MEMBER void add(int pixel, const Waiting& next, f32x8 alpha) {
        if (count + 8 > room_) make_room();
        f32x8 rows[4] = {bits_to_float(next.entry), bits_to_float(splat_int(pixel) + iota_int()), alpha,
                         next.inverse_depth};
        transpose_halves(rows);
        const unsigned seen = bits(alpha > splat(0));
        FragmentRecord* end = records_.get() + count;
        for (int k = 0; k < 8; ++k) {
            store_four((float*)end, k < 4 ? low_half(rows[k]) : high_half(rows[k - 4]));
            end += seen >> k & 1;
        }
        count = end - records_.get();
    }

private:
    Buffer<FragmentRecord> records_;
    size_t room_ = 0;

    __attribute__((noinline)) void make_room() {
        room_ = std::max<size_t>(2 * room_, 65536);
        Buffer<FragmentRecord> larger(room_);
        if (count) std::memcpy(larger.get(), records_.get(), count * sizeof(FragmentRecord));
        std::swap(records_, larger);
    }
};

// Marks the entries that have the weight `prune` in some pixel, and how deep light has come.
HUSH_INLINE void note(CellSums& sums, int row, const Waiting& next, f32x8 alpha, f32x8 rest, const MemberJob& job,
                      uint8_t* matters) {
    const f32x8 weight = rest * alpha, after = rest - weight;
    if (const unsigned heavy = bits(weight >= splat(job.prune))) {
        alignas(32) int32_t entries[8];
        store(entries, next.entry);
        for (unsigned left = heavy; left; left &= left - 1) matters[entries[__builtin_ctz(left)]] = 1;
    }
    const float levels[kProfileLevels] = {0.5f, job.stop};
    for (int level = 0; level < kProfileLevels; ++level) {
        const i32x8 crossed = (rest > splat(levels[level])) & (after <= splat(levels[level]));
        if (!any(crossed)) continue;
        sums.passed[level][row] = select(crossed, splat(1) / next.inverse_depth, sums.passed[level][row]);
    }
}

// A finished pixel shows what it has found so far.
void finish(CellBlend& cell, CellSums& sums, float stop) {
    for (int row = 0; row < kCell; ++row) {
        const i32x8 finished = cell.rest[row] < splat(stop);
        const f32x8 scale = select(finished, splat(1) / max(splat(1) - cell.rest[row], splat(0.5f)), splat(1));
        for (auto& color : sums.color) color[row] = color[row] * scale;
        cell.rest[row] = select(finished, splat(0), cell.rest[row]);
    }
}

// The profile of the set's cells within one of ours; they are half as large.
void write_profile(const CellSums& sums, const Tile& place, ActiveSet* next) {
    for (int part = 0; part < 4; ++part) {
        const int x0 = part % 2 * kSetCell, y0 = part / 2 * kSetCell;
        const size_t at = (size_t)((place.y0 + y0) / kSetCell) * next->cell_columns + (place.x0 + x0) / kSetCell;
        for (int level = 0; level < kProfileLevels; ++level) {
            float most = 0;
            for (int y = y0; y < std::min(y0 + kSetCell, place.height); ++y)
                for (int x = x0; x < std::min(x0 + kSetCell, place.width); ++x)
                    most = std::max(most, sums.passed[level][y][x]);
            next->plane(level)[at] = most;
        }
    }
}

struct Workplace {
    PixelSorter sorter;
    CellSums sums;
    Buffer<Look> looks;
    Buffer<uint8_t> met, matters;
    Records records;
};

template <bool Surfels, Wanted Sums>
void draw_patch(Scene& scene, const Camera& camera, const TileLists& lists, int index, const Tile& patch,
                const Colors& colors, const SortedOutput& out, PatchFragments* tape) {
    const MemberJob* set = out.set;
    static thread_local Workplace of_thread;
    Workplace* mine = &of_thread;
    asm("" : "+r"(mine));  // or the compiler looks up the thread's own memory at every use
    PixelSorter& sorter = mine->sorter;
    CellSums& sums = mine->sums;
    const bool members = Sums == kMembers;
    const float end = members ? set->finished[patch.y0 / kSetTile * set->columns + patch.x0 / kSetTile] : kUnknown;
    const float stop = members ? set->stop : out.stop;
    sorter.list(scene, camera, lists, index, patch, members ? set->members : nullptr, end);
    mine->looks.resize(sorter.entry_count + 1);
    mine->met.resize(sorter.entry_count);
    std::fill_n(mine->met.get(), sorter.entry_count, (uint8_t)0);
    Look* looks = mine->looks.get();
    uint8_t* met = mine->met.get();
    mine->records.count = 0;
    if constexpr (Sums == kMembers) {
        mine->matters.resize(sorter.entry_count + 1);
        std::fill_n(mine->matters.get(), sorter.entry_count + 1, (uint8_t)0);
    }
    uint8_t* matters = mine->matters.get();
    looks[sorter.entry_count] = Look{};
    auto meet = [&](int entry) {
        if (met[entry]) return;
        met[entry] = 1;
        const Entry& e = sorter.entries[entry];
        looks[entry].rgb = color_of(colors, camera.eye, (int32_t)e.key);
        float normal[4] = {};
        if constexpr (Sums == kColorsAndGeometry) normal_of(scene, camera, e.slot, normal);
        looks[entry].normal = load_four(normal);
    };
    const Tile tile = tile_at(lists, camera, index);
    constexpr bool kTaped = Sums == kColors || Sums == kColorsAndGeometry;
    if constexpr (kTaped) {
        tape->slots.resize(sorter.entry_count);
        for (int k = 0; k < sorter.entry_count; ++k) tape->slots[k] = sorter.entries[k].slot;
    }
    for (int y = 0; y < patch.height; y += kCell)
        for (int x = 0; x < patch.width; x += kCell) {
            const Tile place = {patch.x0 + x, patch.y0 + y, std::min(patch.width - x, kCell),
                                std::min(patch.height - y, kCell)};
            CellBlend cell{place.x0 - tile.x0, place.y0 - tile.y0, {}, (1u << place.height) - 1};
            for (int row = 0; row < 8; ++row)
                cell.rest[row] =
                    select(iota_int() < splat_int(row < place.height ? place.width : 0), splat(1), splat(0));
            std::memset(&sums, 0, sizeof sums);
            if constexpr (Sums == kMembers)
                for (auto& rows : sums.passed)
                    for (f32x8& row : rows) row = splat(kUnknown);
            auto visit = [&](int row, const Waiting& next, f32x8 alpha, f32x8 rest) {
                if constexpr (kTaped) mine->records.add((y + row) * kPatch + x, next, alpha);
                if constexpr (Sums == kMembers) note(sums, row, next, alpha, rest, *set, matters);
                blend<Sums>(sums, row, next, alpha, rest, looks);
            };
            sorter.blend<Surfels>(scene, camera, tile, y / kCell * kPatchCells + x / kCell, cell, stop, meet, visit);
            if constexpr (Sums == kMembers) {
                finish(cell, sums, stop);
                write_profile(sums, place, set->next);
            }
            write_cell(cell, sums, place, camera.width, out);
        }
    if constexpr (kTaped) tape->records.assign(mine->records.get(), mine->records.get() + mine->records.count);
    if constexpr (Sums == kMembers)
        for (int k = 0; k < sorter.entry_count; ++k) {
            if (!matters[k]) continue;
            const int at = sorter.entries[k].slot;
            __atomic_fetch_or(set->kept + (at >> 6), 1ull << (at & 63), __ATOMIC_RELAXED);
        }
}

}  // namespace

void exact(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
           const SortedOutput& out) {
    auto* draw = out.set         ? (scene.surfels ? draw_patch<true, kMembers> : draw_patch<false, kMembers>)
                 : out.tape      ? (out.geometry ? draw_patch<true, kColorsAndGeometry> : draw_patch<true, kColors>)
                 : scene.surfels ? draw_patch<true, kMoments>
                                 : draw_patch<false, kMoments>;
    const int patches = lists.columns * lists.rows * kPatchesPerTile;
    if (out.tape) out.tape->patches.resize(patches);
    parallel_for(patches, threads, [&](int job) {
        const Tile patch = patch_at(lists, camera, job);
        if (patch.width < 1 || patch.height < 1) return;
        PatchFragments* tape = out.tape ? &out.tape->patches[job] : nullptr;
        draw(scene, camera, lists, job / kPatchesPerTile, patch, colors, out, tape);
    });
}

}  // namespace hush::HUSH_ISA
