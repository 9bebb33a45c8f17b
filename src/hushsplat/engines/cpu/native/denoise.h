// What one step of the denoiser takes and gives; docs/denoiser.md defines every pass.
#pragma once

#include <cstddef>

#include "spec.h"

namespace hush {

struct DenoiseStep {
    int width, height;
    const float* color;        // [h][w][3]
    const float* depth;        // [h][w]
    const float* neural_view;  // [h][w][4] or null
    const float* previous;     // [h][w][16] or null: no history
    bool is_static;            // the camera has not moved since
    float fx, fy, cx, cy;      // of this frame
    float previous_fx, previous_fy, previous_cx, previous_cy;
    float motion[12];  // previous from current less the identity, rows of [R - I | t]
    const DenoiserWeights* weights;
    DenoiserSettings settings;
    float* state;  // [h][w][16]
    float* shown;  // [h][w][3]
    float* views;  // [h][w][kViewFloats] or null: what a person may want to look at
};

}  // namespace hush
