// What one step of the denoiser takes and gives; docs/denoiser.md defines every pass.
#pragma once

#include <cstddef>

namespace hush {

constexpr int kViewFloats =
    13;  // composite RGB, filtered RGB, gate, relative depth difference, motion x and y in px, smoothed RGB
constexpr int kCompositeView = 0, kFilteredView = 3, kGateView = 6;
constexpr int kStateFloats = 16;  // per pixel, in the order of core/state.py

enum StateChannel {
    kAccumulated = 0,
    kSquaredLuma = 3,
    kAccumulatedFrames = 4,
    kAccumulatedTrust = 5,
    kDenoised = 6,
    kDenoisedFrames = 9,
    kDenoisedTrust = 10,
    kStabilised = 11,
    kDepth = 14,
    kSpare = 15
};

// Layers of width 8, input-major: weight[input · 8 + output], depthwise: weight[tap · 8 + channel].
struct DenoiserWeights {
    float encode[64], encode_bias[8];
    float depthwise1[72], depthwise1_bias[8], point1[64], point1_bias[8];
    float point2[64], point2_bias[8];
    float depthwise2[72], depthwise2_bias[8], point3[64], point3_bias[8];
    float head[8], head_bias;
    float denoised_depthwise[72], denoised_depthwise_bias[8], denoised_head[8], denoised_head_bias;
    float gamma;
};

enum class Trust { learned, one, heuristic };
enum class Gate { learned, accumulated, denoised };  // learned, g = 0, g = 1

struct DenoiserSettings {
    float accumulated_cap, denoised_cap, tau_frames, motion_scale_px, far;
    float stabilise_weight, stabilise_motion, stabilise_slack, stabilise_depth, stabilise_rescue;
    float sigma, smooth_errors;
    Trust trust;
    Gate gate;
    bool filter, smooth, stabilise, zero_shot;
};

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
