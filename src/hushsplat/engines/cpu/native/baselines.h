// What one step of a baseline takes and gives; engines/cpu/baselines.py says what each of them computes.
#pragma once

#include <cstddef>

#include "spec.h"

namespace hush {

constexpr int kHistoryFloats = kTaaStateFloats;  // per pixel; taa, st-taa and svgf have the same

// Two cameras, one frame apart. `change` holds the rows of [R - I, t], where [R t] takes a point to the other camera.
struct CameraMotion {
    bool is_static;
    float fx, fy, cx, cy;                          // px: the camera that `change` takes points from
    float other_fx, other_fy, other_cx, other_cy;  // px: the camera that it takes them to
    float change[12];
};

struct BaselineStep {
    int width, height, threads;
    const float* color;     // [h][w][3]
    const float* depth;     // [h][w]
    const float* previous;  // [h][w][8] or null: no history
    CameraMotion motion;    // from this frame to the previous one; st-taa: from the previous one to this frame
    float far;              // world units: depth where neither a pixel nor its neighbours hit anything
    float* history;         // [h][w][8]
    float* shown;           // [h][w][3]
};

}  // namespace hush
