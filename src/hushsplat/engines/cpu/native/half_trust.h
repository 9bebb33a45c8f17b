// Trust at half resolution: features are averaged over 2×2 pixels, and each pixel takes its trust from between four.
#pragma once

#include "rows.h"

namespace hush::HUSH_ISA {

constexpr int kHalfHalo = 8;  // px: four at half resolution: two layers, going back to full, the neighbourhoods there

// Eight planes of a row at half resolution from two rows; an odd last column counts twice.
HUSH_INLINE void halve_planes(float* upper, float* lower, int columns, float* out) {
    const int half = (columns + 1) / 2;
    for (int c = 0; c < 8; ++c, upper += kPlane, lower += kPlane, out += kPlane) {
        upper[columns] = upper[columns - 1];
        lower[columns] = lower[columns - 1];
        for (int k = 0; k < half; ++k)
            out[k] = 0.25f * ((upper[2 * k] + upper[2 * k + 1]) + (lower[2 * k] + lower[2 * k + 1]));
    }
}

// A plane of `columns` pixels between two rows at half resolution, a quarter of the way from `near` to `far`. Beyond the
// ends the last one counts again: that is so at the edges of the picture, and inside it nobody uses those pixels.
HUSH_INLINE void double_plane(const float* near, const float* far, int columns, float* out) {
    const int half = (columns + 1) / 2;
    alignas(32) float row[kPlane];
    float* between = row + kMargin;
    for (int k = 0; k < half; ++k) between[k] = 0.75f * near[k] + 0.25f * far[k];
    between[-1] = between[0];
    between[half] = between[half - 1];
    for (int k = 0; k < half; ++k) {
        out[2 * k] = 0.75f * between[k] + 0.25f * between[k - 1];
        out[2 * k + 1] = 0.75f * between[k] + 0.25f * between[k + 1];
    }
}

}  // namespace hush::HUSH_ISA
