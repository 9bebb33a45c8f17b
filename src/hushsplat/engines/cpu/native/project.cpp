// Projects one chunk of Gaussians: what a fragment of each will need, its box in the picture, its nearest depth.
#include "functions.h"
#include "kernels.h"

namespace hush::HUSH_ISA {
namespace {

struct V3 {
    f32x8 x, y, z;
};

HUSH_INLINE V3 rotate(const float* r, V3 v) {
    return {splat(r[0]) * v.x + splat(r[1]) * v.y + splat(r[2]) * v.z,
            splat(r[3]) * v.x + splat(r[4]) * v.y + splat(r[5]) * v.z,
            splat(r[6]) * v.x + splat(r[7]) * v.y + splat(r[8]) * v.z};
}

HUSH_INLINE V3 cross(V3 a, V3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
HUSH_INLINE f32x8 dot(V3 a, V3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }

struct Form {
    f32x8 ux, uy, vy, gx, gy, hxx, hxy, hyy;  // as in Projected
    f32x8 x_low, x_high, y_low, y_high;       // of the footprint: slopes x / z and y / z
    f32x8 zz;                                 // variance along the depth axis
};

// Least and largest slope x / z of the ellipsoid D² <= level of covariance xx, xz, zz around (x, z), as far as it lies
// behind the near plane. Slopes of tangents through the eye solve m b² - 2 g b + gxx = 0; `disc` = g² - m gxx.
HUSH_INLINE void slopes(f32x8 x, f32x8 z, f32x8 xx, f32x8 xz, f32x8 zz, f32x8 level, f32x8 disc, float near, f32x8* low,
                        f32x8* high) {
    f32x8 m = level * zz - z * z, g = level * xz - x * z;
    f32x8 root = sqrt(max(disc, splat(0)));
    f32x8 im = splat(1) / m;
    f32x8 a = (g + root) * im, b = (g - root) * im;
    *low = min(a, b);
    *high = max(a, b);
    f32x8 reach = sqrt(level * zz);
    i32x8 cut = ~(z - reach > splat(near));
    if (!any(cut)) return;
    // Cut by the near plane: the ends are tangent points behind it, or lie on the cut itself.
    const f32x8 inf = splat(1e9f);
    f32x8 cut_low = inf, cut_high = -inf;
    for (f32x8 slope : {a, b}) {
        f32x8 lx = xx - slope * xz, lz = xz - slope * zz;  // covariance times (1, -slope)
        f32x8 at = z - (x - slope * z) * lz / max(lx - slope * lz, splat(1e-30f));
        i32x8 real = (disc >= splat(0)) & (at > splat(near) * splat(0.999f));
        cut_low = select(real, min(cut_low, slope), cut_low);
        cut_high = select(real, max(cut_high, slope), cut_high);
    }
    f32x8 back = splat(near) - z, izz = splat(1) / max(zz, splat(1e-30f));
    f32x8 middle = x + xz * izz * back;
    f32x8 half = sqrt(max((level - back * back * izz) * (xx - xz * xz * izz), splat(0)));
    cut_low = min(cut_low, (middle - half) * splat(1 / near));
    cut_high = max(cut_high, (middle + half) * splat(1 / near));
    *low = select(cut, cut_low, *low);
    *high = select(cut, cut_high, *high);
}

HUSH_INLINE Form surfel_form(const Camera& camera, V3 c, V3 a, V3 b, f32x8 level) {
    Form form;
    V3 n = cross(a, b), bc = cross(b, c), ca = cross(c, a);
    f32x8 nc = dot(n, c);
    // Seen edge-on the plane is no help: let the low-pass decide everywhere (it does in that limit).
    i32x8 edge_on = nc * nc <= splat(1e-10f) * dot(n, n) * dot(c, c);
    f32x8 scale = c.z / nc;  // u, v and 1 / z relative to the centre's 1 / z
    f32x8 ifx = splat(1 / camera.fx), ify = splat(1 / camera.fy);
    f32x8 ux = bc.x * scale * ifx, uy = bc.y * scale * ify;
    f32x8 vx = ca.x * scale * ifx, vy = ca.y * scale * ify;
    // Turn (u, v) so that v does not change along a row.
    f32x8 along = sqrt(ux * ux + vx * vx);
    f32x8 turn = splat(1) / max(along, splat(1e-30f));
    form.ux = select(edge_on, splat(1e12f), along);
    form.uy = select(edge_on, splat(0), (ux * uy + vx * vy) * turn);
    form.vy = select(edge_on, splat(1e12f), (ux * vy - uy * vx) * turn);
    form.gx = select(edge_on, splat(0), n.x * scale * ifx);
    form.gy = select(edge_on, splat(0), n.y * scale * ify);
    form.hxx = form.hxy = form.hyy = splat(0);

    form.zz = a.z * a.z + b.z * b.z;
    slopes(c.x, c.z, a.x * a.x + b.x * b.x, a.x * a.z + b.x * b.z, form.zz, level,
           level * (ca.y * ca.y + bc.y * bc.y - level * n.y * n.y), camera.near, &form.x_low, &form.x_high);
    slopes(c.y, c.z, a.y * a.y + b.y * b.y, a.y * a.z + b.y * b.z, form.zz, level,
           level * (ca.x * ca.x + bc.x * bc.x - level * n.x * n.x), camera.near, &form.y_low, &form.y_high);
    return form;
}

// With `antialiased` the level falls by how much the dilation has enlarged the projected area, and `drawn` with it.
HUSH_INLINE Form ellipsoid_form(const Camera& camera, V3 c, const f32x8* world, bool antialiased, f32x8& level,
                                i32x8& drawn) {
    Form form;
    const float* r = camera.rotation;
    V3 column[3];  // camera from world times the covariance
    column[0] = rotate(r, {world[0], world[1], world[2]});
    column[1] = rotate(r, {world[1], world[3], world[4]});
    column[2] = rotate(r, {world[2], world[4], world[5]});
    auto entry = [&](f32x8 V3::* row, int other) {
        return column[0].*row * splat(r[3 * other]) + column[1].*row * splat(r[3 * other + 1]) +
               column[2].*row * splat(r[3 * other + 2]);
    };
    f32x8 dilate = splat(kDilation) * c.z * c.z;
    f32x8 dilate_x = dilate * splat(1 / (camera.fx * camera.fx)),
          dilate_y = dilate * splat(1 / (camera.fy * camera.fy));
    f32x8 xx = entry(&V3::x, 0) + dilate_x, yy = entry(&V3::y, 1) + dilate_y;
    f32x8 xy = entry(&V3::x, 1), xz = entry(&V3::x, 2), yz = entry(&V3::y, 2), zz = max(entry(&V3::z, 2), splat(0));
    // Adjugate: the denominator's quadratic form.
    f32x8 jxx = max(yy * zz - yz * yz, splat(0)), jyy = max(xx * zz - xz * xz, splat(0)), jzz = xx * yy - xy * xy;
    f32x8 jxy = xz * yz - xy * zz, jxz = xy * yz - xz * yy, jyz = xy * xz - yz * xx;
    f32x8 iz = splat(1) / c.z;
    V3 p = {c.x * iz, c.y * iz, splat(1)};
    V3 jp = {jxx * p.x + jxy * p.y + jxz, jxy * p.x + jyy * p.y + jyz, jxz * p.x + jyz * p.y + jzz};
    f32x8 s0 = max(dot(p, jp), splat(1e-30f));
    f32x8 is0 = splat(1) / s0;
    if (antialiased) {
        // s0 is the determinant of the projected covariance (local affine, at the centre); this one is not dilated.
        f32x8 across = xx - dilate_x + p.x * (p.x * zz - splat(2) * xz),
              down = yy - dilate_y + p.y * (p.y * zz - splat(2) * yz);
        f32x8 both = xy - p.x * yz - p.y * xz + p.x * p.y * zz;
        f32x8 share = min(max((across * down - both * both) * is0, splat(1e-12f)), splat(1));
        level = level + splat(0.6931471805599453f) * log2(share);
        drawn = drawn & (level >= splat(0));
        level = max(level, splat(0));
    }
    f32x8 ifx = splat(1 / camera.fx), ify = splat(1 / camera.fy);
    f32x8 gx = jp.x * is0, gy = jp.y * is0;
    form.gx = gx * ifx;
    form.gy = gy * ify;
    form.hxx = max(jxx * is0 - gx * gx, splat(0)) * ifx * ifx;
    form.hxy = splat(2) * (jxy * is0 - gx * gy) * ifx * ify;
    form.hyy = max(jyy * is0 - gy * gy, splat(0)) * ify * ify;
    // Numerator nxx ex² + nxy ex ey + nyy ey², of determinant c.z⁴ s0, as a sum of two squares.
    f32x8 nxx = c.z * (yy * c.z - yz * c.y) + c.y * (zz * c.y - yz * c.z);
    f32x8 nyy = c.z * (xx * c.z - xz * c.x) + c.x * (zz * c.x - xz * c.z);
    f32x8 nxy = xz * c.y * c.z + yz * c.x * c.z - zz * c.x * c.y - xy * c.z * c.z;  // half of it
    nxx = max(nxx, splat(1e-30f));
    nyy = max(nyy, splat(0));
    f32x8 along = sqrt(nxx * is0);
    f32x8 turn = splat(1) / along;
    form.ux = along * ifx;
    form.uy = nxy * is0 * turn * ify;
    form.vy = c.z * c.z * sqrt(is0) * turn * ify;

    form.zz = zz;
    slopes(c.x, c.z, xx, xz, zz, level, level * (nyy - level * jyy), camera.near, &form.x_low, &form.x_high);
    slopes(c.y, c.z, yy, yz, zz, level, level * (nxx - level * jxx), camera.near, &form.y_low, &form.y_high);
    return form;
}

// First pixel whose centre is at or right of `low`, and the one past the last at or left of `high`, inside 0 .. size.
HUSH_INLINE void pixel_range(f32x8 low, f32x8 high, int size, i32x8* first, i32x8* end) {
    const f32x8 slack = splat(0.01f);  // px, against rounding
    f32x8 limit = splat((float)size);
    low = min(max(low - splat(0.5f) - slack, splat(-1)), limit);
    high = min(max(high + splat(0.5f) + slack, splat(0)), limit);
    *first = max(-floor_int(-low), splat_int(0));
    *end = floor_int(high);
}

HUSH_INLINE int16_t least_of(i32x8 v) {
    int32_t r = v[0];
    for (int k = 1; k < 8; ++k) r = v[k] < r ? v[k] : r;
    return (int16_t)r;
}

static_assert(sizeof(Projected) == 12 * sizeof(float), "written below as twelve floats");

// Only groups of eight with a bit in `wanted` are projected; the others have empty boxes.
template <bool Surfels>
void project_chunk(Scene& scene, const Camera& camera, int chunk, const uint64_t wanted[2]) {
    const float* fixed = &scene.fixed[(size_t)chunk * kFixed * kChunk];
    Projected* out = &scene.projected[(size_t)chunk * kChunk];
    int16_t* box = &scene.box[(size_t)chunk * 4 * kChunk];
    float* nearest = &scene.nearest[(size_t)chunk * kChunk];
    uint8_t* flags = &scene.flags[(size_t)chunk * kChunk];
    i32x8 left = splat_int(camera.width), right = splat_int(0), top = splat_int(camera.height), bottom = splat_int(0);
    f32x8 most = splat(0);
    for (int k = 0; k < kChunk; k += 8) {
        if (!(wanted[k / 64] >> k % 64 & 255)) {
            for (int side = 0; side < 4; ++side) store(box + side * kChunk + k, i16x8{});
            continue;
        }
        auto row = [&](int r) { return load(fixed + r * kChunk + k); };
        V3 c = rotate(camera.rotation, {row(kMeanX) - splat(camera.eye[0]), row(kMeanY) - splat(camera.eye[1]),
                                        row(kMeanZ) - splat(camera.eye[2])});
        f32x8 level = row(kLogOpacity) + splat(kMaxLevel);
        i32x8 drawn = (c.z > splat(camera.near)) & (level >= splat(0));
        if (!any(drawn)) {
            for (int side = 0; side < 4; ++side) store(box + side * kChunk + k, i16x8{});
            continue;
        }
        c.z = select(drawn, c.z, splat(1));
        level = select(drawn, level, splat(0));
        Form form;
        if constexpr (Surfels) {
            V3 a = rotate(camera.rotation, {row(kShape), row(kShape + 1), row(kShape + 2)});
            V3 b = rotate(camera.rotation, {row(kShape + 3), row(kShape + 4), row(kShape + 5)});
            form = surfel_form(camera, c, a, b, level);
        } else {
            f32x8 world[6];
            for (int e = 0; e < 6; ++e) world[e] = row(kShape + e);
            form = ellipsoid_form(camera, c, world, scene.antialiased, level, drawn);
        }
        f32x8 iz = splat(1) / c.z;
        f32x8 center_x = splat(camera.fx) * c.x * iz + splat(camera.cx);
        f32x8 center_y = splat(camera.fy) * c.y * iz + splat(camera.cy);
        f32x8 reach = sqrt(level * form.zz);
        f32x8 z_low = c.z - reach, z_high = c.z + reach;
        form.x_low = splat(camera.fx) * form.x_low + splat(camera.cx);
        form.x_high = splat(camera.fx) * form.x_high + splat(camera.cx);
        form.y_low = splat(camera.fy) * form.y_low + splat(camera.cy);
        form.y_high = splat(camera.fy) * form.y_high + splat(camera.cy);
        i32x8 low_pass = splat_int(0);
        if constexpr (Surfels) {
            f32x8 radius = sqrt(splat(0.5f) * level);
            form.x_low = min(form.x_low, center_x - radius);
            form.x_high = max(form.x_high, center_x + radius);
            form.y_low = min(form.y_low, center_y - radius);
            form.y_high = max(form.y_high, center_y + radius);
            // The plane decides everywhere if even the steepest direction is flatter than the low-pass.
            f32x8 steepest = form.ux * form.ux + form.uy * form.uy + form.vy * form.vy;
            f32x8 least = c.z / z_high;
            low_pass = ~(steepest < splat(2) * least * least);
        }
        i32x8 x0, x1, y0, y1;
        pixel_range(form.x_low, form.x_high, camera.width, &x0, &x1);
        pixel_range(form.y_low, form.y_high, camera.height, &y0, &y1);
        i32x8 inside = drawn & (x0 < x1) & (y0 < y1);
        store(box + 0 * kChunk + k, to_short(x0 & inside));
        store(box + 1 * kChunk + k, to_short(x1 & inside));
        store(box + 2 * kChunk + k, to_short(y0 & inside));
        store(box + 3 * kChunk + k, to_short(y1 & inside));
        f32x8 reach_near = splat(kNearer) / max(z_low, splat(camera.near));
        store(nearest + k, reach_near);
        left = min(left, select(inside, x0, left));
        right = max(right, select(inside, x1, right));
        top = min(top, select(inside, y0, top));
        bottom = max(bottom, select(inside, y1, bottom));
        most = max(most, select(inside, reach_near, most));
        i32x8 clipped = ~((z_low > splat(camera.near)) & (splat(1.25f) * z_low > c.z));
        unsigned low_pass_bits = bits(low_pass), clipped_bits = bits(clipped);
        for (int lane = 0; lane < 8; ++lane)
            flags[k + lane] = (low_pass_bits >> lane & 1) * kLowPass | (clipped_bits >> lane & 1) * kClipped;
        alignas(32) float lanes[12][8];
        const f32x8 columns[12] = {center_x, center_y, form.ux,  form.uy,  form.vy, form.gx,
                                   form.gy,  form.hxx, form.hxy, form.hyy, iz,      level - splat(kMaxLevel)};
        for (int column = 0; column < 12; ++column) store(lanes[column], columns[column]);
        for (int lane = 0; lane < 8; ++lane) {
            float* record = &out[k + lane].center_x;
            for (int column = 0; column < 12; ++column) record[column] = lanes[column][lane];
        }
    }
    ChunkReach& reach = scene.reach[chunk];
    reach.x0 = least_of(left), reach.x1 = -least_of(-right), reach.y0 = least_of(top), reach.y1 = -least_of(-bottom);
    reach.nearest = -horizontal_min(-most);
}

}  // namespace

void project(Scene& scene, const Camera& camera, int chunk) {
    const uint64_t all[2] = {~0ull, ~0ull};
    project_some(scene, camera, chunk, all);
}

void project_some(Scene& scene, const Camera& camera, int chunk, const uint64_t wanted[2]) {
    scene.surfels ? project_chunk<true>(scene, camera, chunk, wanted)
                  : project_chunk<false>(scene, camera, chunk, wanted);
}

}  // namespace hush::HUSH_ISA
