// From the sums over a surfel's fragments to its position, scales, rotation, opacity and colour: the chain rule through
// project.cpp (surfel_form) and harmonics.h.
#include "project_gradient.h"

#include "harmonics.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

struct P3 {
    float x, y, z;
};
HUSH_INLINE P3 operator+(P3 a, P3 b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
HUSH_INLINE P3 operator*(float s, P3 a) { return {s * a.x, s * a.y, s * a.z}; }
HUSH_INLINE P3 cross(P3 a, P3 b) { return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x}; }
HUSH_INLINE float dot(P3 a, P3 b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
HUSH_INLINE P3 turned(const float* r, P3 v) {  // camera from world
    return {r[0] * v.x + r[1] * v.y + r[2] * v.z, r[3] * v.x + r[4] * v.y + r[5] * v.z,
            r[6] * v.x + r[7] * v.y + r[8] * v.z};
}
HUSH_INLINE P3 turned_back(const float* r, P3 v) {  // world from camera
    return {r[0] * v.x + r[3] * v.y + r[6] * v.z, r[1] * v.x + r[4] * v.y + r[7] * v.z,
            r[2] * v.x + r[5] * v.y + r[8] * v.z};
}

// By a surfel's centre and its scaled axes, in camera space.
struct ByPlane {
    P3 c, a, b;
    float center_x, center_y;
};

// The inverse of surfel_form: gradients by ux .. gy and the centre, sent back to c, a and b. As there,
// (ux, uy) = κ · (b × c) / f, (vx, vy) = κ · (c × a) / f, g = κ · (a × b) / f, κ = c.z / (n·c), before (u, v) is
// turned: Q does not depend on the turn, so neither does what is sent back.
ByPlane by_plane(const Camera& camera, P3 c, P3 a, P3 b, const float* sum) {
    const float ifx = 1 / camera.fx, ify = 1 / camera.fy, iz = 1 / c.z;
    const P3 n = cross(a, b), bc = cross(b, c), ca = cross(c, a);
    const float nc = dot(n, c);
    ByPlane by = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}, -sum[kSumLowX], -sum[kSumLowY]};
    if (nc * nc > 1e-10f * dot(n, n) * dot(c, c)) {  // else edge-on: the low-pass decides everywhere
        const float scale = c.z / nc;
        const float ux = bc.x * scale * ifx, uy = bc.y * scale * ify, vx = ca.x * scale * ifx, vy = ca.y * scale * ify;
        const float gx = n.x * scale * ifx, gy = n.y * scale * ify;
        const float by_ux = 2 * (ux * sum[kSumXX] + uy * sum[kSumXY]),
                    by_uy = 2 * (ux * sum[kSumXY] + uy * sum[kSumYY]);
        const float by_vx = 2 * (vx * sum[kSumXX] + vy * sum[kSumXY]),
                    by_vy = 2 * (vx * sum[kSumXY] + vy * sum[kSumYY]);
        const float by_gx = sum[kSumTX], by_gy = sum[kSumTY];
        const float u = ux * sum[kSumX] + uy * sum[kSumY], v = vx * sum[kSumX] + vy * sum[kSumY];
        by.center_x -= 2 * (ux * u + vx * v) + gx * sum[kSumT];
        by.center_y -= 2 * (uy * u + vy * v) + gy * sum[kSumT];
        const P3 by_bc = {by_ux * scale * ifx, by_uy * scale * ify, 0};
        const P3 by_ca = {by_vx * scale * ifx, by_vy * scale * ify, 0};
        const float by_scale = (by_ux * ux + by_uy * uy + by_vx * vx + by_vy * vy + by_gx * gx + by_gy * gy) / scale;
        const float by_nc = -by_scale * scale / nc;
        const P3 by_n = P3{by_gx * scale * ifx, by_gy * scale * ify, 0} + by_nc * c;
        by.c = by_nc * n + cross(by_bc, b) + cross(a, by_ca);
        by.c.z += by_scale / nc;
        by.a = cross(by_ca, c) + cross(b, by_n);
        by.b = cross(c, by_bc) + cross(by_n, a);
    }
    by.c.x += camera.fx * iz * by.center_x;
    by.c.y += camera.fy * iz * by.center_y;
    by.c.z -= (camera.fx * c.x * by.center_x + camera.fy * c.y * by.center_y) * iz * iz;
    by.c.z -= sum[kSumInverseDepth] * iz * iz;
    return by;
}

// By the unit normal that faces the eye, sent back to the axes (world).
void by_normal(P3 a, P3 b, P3 to_surfel, const float* by_unit, P3* by_a, P3* by_b) {
    const P3 n = cross(a, b), by = {by_unit[0], by_unit[1], by_unit[2]};
    const float length2 = dot(n, n);
    if (length2 <= 0) return;
    const float scale = (dot(n, to_surfel) > 0 ? -1 : 1) / __builtin_sqrtf(length2);
    const P3 by_n = scale * (by + (-dot(by, n) / length2) * n);
    *by_a = *by_a + cross(b, by_n);
    *by_b = *by_b + cross(by_n, a);
}

// By the columns of the rotation matrix of a quaternion wxyz (see scene.cpp), sent back to the quaternion.
void by_quaternion(const float* q, P3 first, P3 second, float* out) {
    const float w = q[0], x = q[1], y = q[2], z = q[3];
    out[0] += 2 * (z * first.y - y * first.z - z * second.x + x * second.z);
    out[1] += 2 * (y * first.y + z * first.z + y * second.x - 2 * x * second.y + w * second.z);
    out[2] += 2 * (-2 * y * first.x + x * first.y - w * first.z + x * second.x + z * second.z);
    out[3] += 2 * (-2 * z * first.x + w * first.y + x * first.z - w * second.x - 2 * z * second.y + y * second.z);
}

// By the colour, sent back to the harmonics and, through the direction they are seen from, to the position.
P3 by_harmonics(const Colors& colors, const float* eye, int32_t id, const float* by_color, float* by_sh) {
    float b[16];
    const float* mean = colors.means + 3 * (size_t)id;
    const int n = basis_at(mean, eye, colors.coefficients, b);
    const float* sh = colors.sh + 3 * (size_t)id * n;
    float by[3], along[16];  // along: by each basis value
    for (int c = 0; c < 3; ++c) {
        float color = 0.5f;
        for (int k = 0; k < n; ++k) color += b[k] * sh[3 * k + c];
        by[c] = color > 0 ? by_color[c] : 0;
    }
    for (int k = 0; k < n; ++k) {
        along[k] = 0;
        for (int c = 0; c < 3; ++c) {
            by_sh[3 * (size_t)id * n + 3 * k + c] += b[k] * by[c];
            along[k] += sh[3 * k + c] * by[c];
        }
    }
    if (n == 1) return {0, 0, 0};
    P3 d = {mean[0] - eye[0], mean[1] - eye[1], mean[2] - eye[2]};
    const float scale = 1 / __builtin_sqrtf(dot(d, d) + 1e-24f);
    d = scale * d;
    float by_unit[3];
    basis_gradient(d.x, d.y, d.z, n, along, by_unit);
    const P3 by_direction = {by_unit[0], by_unit[1], by_unit[2]};
    return scale * (by_direction + (-dot(by_direction, d)) * d);
}

void chain(const Scene& scene, const Camera& camera, const Colors& colors, int slot, const float* sum,
           const GradientJob& job) {
    const int32_t id = scene.id[slot];
    const float* row = &scene.fixed[(size_t)(slot / kChunk) * kFixed * kChunk] + slot % kChunk;
    auto entry = [&](int r) { return row[r * kChunk]; };
    const P3 away = {entry(kMeanX) - camera.eye[0], entry(kMeanY) - camera.eye[1], entry(kMeanZ) - camera.eye[2]};
    const P3 a = {entry(kShape), entry(kShape + 1), entry(kShape + 2)};
    const P3 b = {entry(kShape + 3), entry(kShape + 4), entry(kShape + 5)};
    const float* r = camera.rotation;
    const ByPlane by = by_plane(camera, turned(r, away), turned(r, a), turned(r, b), sum);
    P3 by_a = turned_back(r, by.a), by_b = turned_back(r, by.b);
    if (job.geometry) by_normal(a, b, away, sum + kSumNormal, &by_a, &by_b);
    const P3 by_mean = turned_back(r, by.c) + by_harmonics(colors, camera.eye, id, sum + kSumRed, job.by_sh);
    job.by_means[3 * (size_t)id] += by_mean.x;
    job.by_means[3 * (size_t)id + 1] += by_mean.y;
    job.by_means[3 * (size_t)id + 2] += by_mean.z;
    const float s0 = job.scales[2 * (size_t)id], s1 = job.scales[2 * (size_t)id + 1];
    job.by_scales[2 * (size_t)id] += dot(by_a, a) / s0;
    job.by_scales[2 * (size_t)id + 1] += dot(by_b, b) / s1;
    by_quaternion(job.rotations + 4 * (size_t)id, s0 * by_a, s1 * by_b, job.by_rotations + 4 * (size_t)id);
    job.by_opacities[id] += -2 * sum[kSumH] / job.opacities[id];  // log_opacity is 2 ln(o), and D² enters as D² - it
    job.by_center[2 * (size_t)id] += by.center_x;
    job.by_center[2 * (size_t)id + 1] += by.center_y;
    job.seen[id] = 1;
}

}  // namespace

void chain_through_projection(const Scene& scene, const Camera& camera, const Colors& colors,
                              const std::vector<std::vector<PartialSums>>& found, int threads, const GradientJob& job) {
    // Every job owns a range of chunks and adds up what the tiles found in their order: the same sums for any threads.
    constexpr int kChunksPerJob = 64;
    const int jobs = (scene.chunks + kChunksPerJob - 1) / kChunksPerJob;
    std::vector<std::vector<const PartialSums*>> share(jobs);
    for (const auto& tile : found)
        for (const PartialSums& partial : tile) share[partial.slot / (kChunk * kChunksPerJob)].push_back(&partial);
    parallel_for(jobs, threads, [&](int index) {
        static thread_local std::vector<float> sums_of_thread;
        static thread_local std::vector<uint8_t> seen_of_thread;
        std::vector<float>& sums = sums_of_thread;
        std::vector<uint8_t>& seen = seen_of_thread;
        const int first = index * kChunksPerJob * kChunk, count = kChunksPerJob * kChunk;
        sums.assign((size_t)count * kSums, 0);
        seen.assign(count, 0);
        for (const PartialSums* partial : share[index]) {
            float* into = &sums[(size_t)(partial->slot - first) * kSums];
            for (int k = 0; k < kSums; ++k) into[k] += partial->sum[k];
            seen[partial->slot - first] = 1;
        }
        for (int k = 0; k < count; ++k)
            if (seen[k]) chain(scene, camera, colors, first + k, &sums[(size_t)k * kSums], job);
    });
}

}  // namespace hush::HUSH_ISA
