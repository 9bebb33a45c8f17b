// The gradient of per-pixel order: the sorter's record is walked once in each pixel's order, for what every fragment
// does to the loss, and once surfel by surfel, for what that does to the surfel.
#include "harmonics.h"
#include "normals.h"
#include "pixel_order.h"
#include "project_gradient.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

// Fragments sorted by surfel; each surfel's begin at a multiple of eight, and the gaps are zeros.
struct BySurfel {
    std::vector<int> count, begin;
    Buffer<float> x, y, h, by_red, by_green, by_blue;  // px in the patch; dL/dD²; weight · dL/dcolour
    Buffer<float> by_inverse_depth, by_normal[3];

    template <bool Geometry>
    void lay_out(const PatchFragments& patch) {
        if (patch.records.size() + 8 * patch.slots.size() > 0x7fffffff)
            throw std::length_error("too many fragments in one place of the picture");
        count.assign(patch.slots.size(), 0);
        begin.resize(patch.slots.size() + 1);
        for (const FragmentRecord& record : patch.records) ++count[record.entry];
        begin[0] = 0;
        for (size_t k = 0; k < count.size(); ++k) begin[k + 1] = begin[k] + (count[k] + 7) / 8 * 8;
        for (Buffer<float>* column : {&x, &y, &h, &by_red, &by_green, &by_blue}) clear(*column);
        if constexpr (Geometry)
            for (Buffer<float>* column : {&by_inverse_depth, &by_normal[0], &by_normal[1], &by_normal[2]})
                clear(*column);
        for (size_t k = 0; k < count.size(); ++k) count[k] = begin[k];  // from here on: where the next one goes
    }

private:
    void clear(Buffer<float>& column) const {
        column.resize(begin.back());
        std::fill_n(column.get(), begin.back(), 0.0f);
    }
};

struct Pixel {
    float rest, behind, by_alpha;  // behind: Σ weight · dL/dweight of all that comes after
    f32x4 by_color;
    float by_geometry[kGeometry];
};

template <bool Geometry>
void load_pixels(const Tile& patch, int width, const GradientJob& job, Pixel* pixels) {
    for (int y = 0; y < patch.height; ++y)
        for (int x = 0; x < patch.width; ++x) {
            Pixel& p = pixels[y * kPatch + x];
            const size_t at = (size_t)(patch.y0 + y) * width + patch.x0 + x;
            p.rest = 1;
            p.by_alpha = job.by_alpha[at];
            p.behind = p.by_alpha * job.alpha[at];
            p.by_color = f32x4{job.by_color[3 * at], job.by_color[3 * at + 1], job.by_color[3 * at + 2], 0};
            for (int c = 0; c < 3; ++c) p.behind += p.by_color[c] * job.color[3 * at + c];
            if constexpr (Geometry)
                for (int c = 0; c < kGeometry; ++c) {
                    p.by_geometry[c] = job.by_geometry[kGeometry * at + c];
                    p.behind += p.by_geometry[c] * job.geometry[kGeometry * at + c];
                }
        }
}

struct Look {
    f32x4 rgb;
    float normal[3];
};

template <bool Geometry>
void by_fragment(const PatchFragments& patch, const Look* looks, Pixel* pixels, BySurfel& sorted) {
    for (const FragmentRecord& record : patch.records) {
        Pixel& p = pixels[record.pixel];
        const Look& look = looks[record.entry];
        const int at = sorted.count[record.entry]++;
        const float weight = record.alpha * p.rest;
        const f32x4 product = look.rgb * p.by_color, by_rgb = weight * p.by_color;
        float by_weight = product[0] + product[1] + product[2] + p.by_alpha;
        if constexpr (Geometry) {
            const float inverse = record.inverse_depth, depth = 1 / inverse;
            const float* by = p.by_geometry;
            by_weight += depth * by[0] + inverse * by[1] + inverse * inverse * by[2];
            sorted.by_inverse_depth[at] = weight * (by[1] + 2 * inverse * by[2] - depth * depth * by[0]);
            for (int axis = 0; axis < 3; ++axis) {
                by_weight += look.normal[axis] * by[3 + axis];
                sorted.by_normal[axis][at] = weight * by[3 + axis];
            }
        }
        p.behind -= weight * by_weight;
        const float through = 1 - record.alpha;
        const float by_alpha = p.rest * by_weight - p.behind / (through > kLeastThrough ? through : kLeastThrough);
        p.rest *= through;
        sorted.x[at] = (float)(record.pixel % kPatch);
        sorted.y[at] = (float)(record.pixel / kPatch);
        sorted.h[at] = -0.5f * record.alpha * by_alpha;
        sorted.by_red[at] = by_rgb[0], sorted.by_green[at] = by_rgb[1], sorted.by_blue[at] = by_rgb[2];
    }
}

template <bool Geometry>
void by_surfel(const Projected& p, float near, uint8_t flags, const BySurfel& sorted, int begin, int end,
               PartialSums& partial) {
    VectorSums<Geometry> sums;
    for (int k = begin; k < end; k += 8) {
        f32x8 dx = load(&sorted.x[k]) + splat(0.5f - p.center_x), dy = load(&sorted.y[k]) + splat(0.5f - p.center_y);
        f32x8 u = splat(p.ux) * dx + splat(p.uy) * dy, v = splat(p.vy) * dy;
        f32x8 t = fma(splat(p.gx), dx, fma(splat(p.gy), dy, splat(1)));
        f32x8 q = u * u + v * v, low = splat(2) * (dx * dx + dy * dy);
        i32x8 plane = splat_int(-1);
        if (flags) plane = (q <= low * t * t) & (t > splat(0)) & (splat(p.inverse_depth * near) * t < splat(1));
        f32x8 h = load(&sorted.h[k]);
        t = select(plane, t, splat(1));
        sums.add(dx, dy, h, select(plane, q / (t * t), low), t, plane);
        sums.row[kSumRed] += load(&sorted.by_red[k]);
        sums.row[kSumGreen] += load(&sorted.by_green[k]);
        sums.row[kSumBlue] += load(&sorted.by_blue[k]);
        if constexpr (Geometry) {
            sums.add_inverse_depth(dx, dy, load(&sorted.by_inverse_depth[k]), p.inverse_depth, t, plane);
            for (int axis = 0; axis < 3; ++axis) sums.row[kSumNormal + axis] += load(&sorted.by_normal[axis][k]);
        }
    }
    sums.store_to(partial);
}

template <bool Geometry>
void walk_patch(Scene& scene, const Camera& camera, const Tile& tile, const Colors& colors, const PatchFragments& patch,
                const GradientJob& job, std::vector<PartialSums>& found) {
    static thread_local struct {
        BySurfel sorted;
        Pixel pixels[kPatchPixels];
        std::vector<Look> looks;
    } mine;
    BySurfel& sorted = mine.sorted;
    std::vector<Look>& looks = mine.looks;
    sorted.lay_out<Geometry>(patch);
    load_pixels<Geometry>(tile, camera.width, job, mine.pixels);
    looks.resize(patch.slots.size());
    for (size_t k = 0; k < patch.slots.size(); ++k) {
        if (sorted.begin[k] == sorted.begin[k + 1]) continue;
        const int slot = patch.slots[k];
        ensure_projected(scene, camera, slot / kChunk);
        looks[k].rgb = color_of(colors, camera.eye, scene.id[slot]);
        if constexpr (Geometry) normal_of(scene, camera, slot, looks[k].normal);
    }
    by_fragment<Geometry>(patch, looks.data(), mine.pixels, sorted);
    for (size_t k = 0; k < patch.slots.size(); ++k) {
        if (sorted.begin[k] == sorted.begin[k + 1]) continue;
        const int slot = patch.slots[k];
        Projected p = scene.projected[slot];
        p.center_x -= (float)tile.x0, p.center_y -= (float)tile.y0;
        found.emplace_back();
        found.back().slot = slot;
        by_surfel<Geometry>(p, camera.near, scene.flags[slot], sorted, sorted.begin[k], sorted.begin[k + 1],
                            found.back());
    }
}

}  // namespace

void exact_gradient(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
                    const FragmentTape& tape, const GradientJob& job) {
    std::vector<std::vector<PartialSums>> found(tape.patches.size());
    parallel_for((int)found.size(), threads, [&](int index) {
        const Tile tile = patch_at(lists, camera, index);
        if (tile.width < 1 || tile.height < 1) return;
        auto* walk = job.geometry ? walk_patch<true> : walk_patch<false>;
        walk(scene, camera, tile, colors, tape.patches[index], job, found[index]);
    });
    chain_through_projection(scene, camera, colors, found, threads, job);
}

}  // namespace hush::HUSH_ISA
