// The derivative of one surfel's fragments by its projected form, eight pixels at a time, and the sums it is kept in.
#pragma once

#include "footprint.h"

namespace hush::HUSH_ISA {

// What the chain through the projection needs of all fragments of a surfel. With h = dL/dD² of a fragment and d its
// offset from the projected centre, where the plane decides: Q and t by which D² = Q / t²; else the low-pass.
enum SumRow {
    kSumXX,
    kSumXY,
    kSumYY,  // Σ h / t² · dx², dx dy, dy²: by the quadratic form Q
    kSumX,
    kSumY,  // Σ h / t² · d: by the centre, through Q
    kSumT,
    kSumTX,
    kSumTY,  // Σ dL/dt · (1, dx, dy)
    kSumLowX,
    kSumLowY,  // Σ dL/dd where the low-pass decides
    kSumH,     // Σ h
    kSumRed,
    kSumGreen,
    kSumBlue,          // Σ weight · dL/dcolour
    kSumInverseDepth,  // Σ dL/d(1 / depth of the centre)
    kSumNormal,        // three: Σ weight · dL/dnormal
    kSums = kSumNormal + 3
};

// One surfel's sums in one tile or patch.
struct PartialSums {
    int32_t slot;  // chunk · kChunk + slot
    float sum[kSums];
};

template <bool Geometry>
struct VectorSums {
    f32x8 row[kSums];

    HUSH_MEMBER VectorSums() {
        for (f32x8& r : row) r = splat(0);
    }

    // One row of fragments: `h` and the weights are 0 where there is none. `squared` is D².
    HUSH_MEMBER void add(f32x8 dx, f32x8 dy, f32x8 h, f32x8 squared, f32x8 t, i32x8 plane) {
        const f32x8 zero = splat(0);
        f32x8 by_plane = select(plane, h, zero);
        f32x8 it = splat(1) / select(plane, t, splat(1));
        f32x8 hq = by_plane * it * it;
        f32x8 hx = hq * dx, hy = hq * dy;
        row[kSumX] += hx;
        row[kSumY] += hy;
        row[kSumXX] += hx * dx;
        row[kSumXY] += hx * dy;
        row[kSumYY] += hy * dy;
        add_t(dx, dy, splat(-2) * by_plane * squared * it);
        f32x8 low = splat(4) * (h - by_plane);
        row[kSumLowX] += low * dx;
        row[kSumLowY] += low * dy;
        row[kSumH] += h;
    }

    HUSH_MEMBER void add_t(f32x8 dx, f32x8 dy, f32x8 by_t) {
        row[kSumT] += by_t;
        row[kSumTX] += by_t * dx;
        row[kSumTY] += by_t * dy;
    }

    // 1 / depth is that of the centre, times t where the plane decides.
    HUSH_MEMBER void add_inverse_depth(f32x8 dx, f32x8 dy, f32x8 by_inverse_depth, float center_inverse_depth, f32x8 t,
                                       i32x8 plane) {
        row[kSumInverseDepth] += by_inverse_depth * select(plane, t, splat(1));
        add_t(dx, dy, select(plane, by_inverse_depth * splat(center_inverse_depth), splat(0)));
    }

    HUSH_MEMBER void store_to(PartialSums& partial) const {
        for (int r = 0; r < (Geometry ? (int)kSums : (int)kSumInverseDepth); ++r) {
            float sum = 0;
            for (int lane = 0; lane < 8; ++lane) sum += row[r][lane];
            partial.sum[r] = sum;
        }
        if constexpr (!Geometry)
            for (int r = kSumInverseDepth; r < kSums; ++r) partial.sum[r] = 0;
    }
};

// Light that is behind a fragment falls with its alpha as 1 / (1 - alpha); opaque ones would divide by zero.
constexpr float kLeastThrough = 1e-4f;

}  // namespace hush::HUSH_ISA
