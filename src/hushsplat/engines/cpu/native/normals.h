// The normal of a surfel as the eye sees it.
#pragma once

#include "kernels.h"

namespace hush::HUSH_ISA {

// Unit normal of a surfel, world, towards the eye; 0 for a surfel without extent.
HUSH_INLINE void normal_of(const Scene& scene, const Camera& camera, int at, float normal[3]) {
    const float* row = &scene.fixed[(size_t)(at / kChunk) * kFixed * kChunk] + at % kChunk;
    auto entry = [&](int r) { return row[r * kChunk]; };
    const float ax = entry(kShape), ay = entry(kShape + 1), az = entry(kShape + 2);
    const float bx = entry(kShape + 3), by = entry(kShape + 4), bz = entry(kShape + 5);
    const float n[3] = {ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx};
    float length2 = 0, along = 0;
    for (int k = 0; k < 3; ++k) {
        length2 += n[k] * n[k];
        along += n[k] * (entry(kMeanX + k) - camera.eye[k]);
    }
    const float scale = length2 > 0 ? (along > 0 ? -1 : 1) / __builtin_sqrtf(length2) : 0;
    for (int k = 0; k < 3; ++k) normal[k] = n[k] * scale;
}

}  // namespace hush::HUSH_ISA
