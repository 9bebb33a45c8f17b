// Pass 3: the anisotropic filter over a pyramid of this frame, and the pyramid itself.
#pragma once

#include <cmath>

#include "denoise.h"
#include "kernels.h"
#include "recycle.h"
#include "threads.h"

namespace hush::HUSH_ISA {

constexpr float kMostInput = 1e9f;  // a colour or depth beyond this is no colour and no depth
constexpr float kMostView = 1e4f;   // limit of V0 .. V3

HUSH_INLINE float limited_view(float v) {
    return !(v - v == 0) ? 0 : v > kMostView ? kMostView : v < -kMostView ? -kMostView : v;
}

// Texels of Y, Co, Cg; in level 0 the fourth is the hole-filled depth. Each level halves the one before, rounded up.
struct Pyramid {
    static constexpr int kLevels = 4;
    int width[kLevels], height[kLevels];
    f4* level[kLevels];

    Pyramid(const DenoiseStep& step, int threads) : memory(sizeof(f4) * texels_for(step)) {
        size_t texels = 0, begin[kLevels];
        for (int k = 0; k < kLevels; ++k) {
            width[k] = k ? (width[k - 1] + 1) / 2 : step.width;
            height[k] = k ? (height[k - 1] + 1) / 2 : step.height;
            begin[k] = texels;
            texels += (size_t)width[k] * height[k];
        }
        for (int k = 0; k < kLevels; ++k) level[k] = static_cast<f4*>(memory.get()) + begin[k];
        // Eight rows of level 0 make one of level 3.
        parallel_for((step.height + 7) / 8, threads, [&](int band) {
            for (int y = band * 8; y < band * 8 + 8 && y < step.height; ++y) fill_row(step, y);
            for (int k = 1; k < kLevels; ++k) {
                const int rows = 8 >> k;
                for (int y = band * rows; y < band * rows + rows && y < height[k]; ++y) halve_row(k, y);
            }
        });
    }

private:
    Recycled memory;

    static size_t texels_for(const DenoiseStep& step) {  // a third more than level 0, and a row and column per level
        return (size_t)(step.width + 8) * (step.height + 8) * 4 / 3 + 64;
    }

    static float valid_depth(const DenoiseStep& step, int x, int y) {
        const float d = step.depth[(size_t)y * step.width + x];
        return d > 0 && d <= kMostInput ? d : 0;  // false for NaN
    }

    static float filled_depth(const DenoiseStep& step, int x, int y) {
        float sum = 0, count = 0;
        for (int j = y > 0 ? y - 1 : 0; j <= y + 1 && j < step.height; ++j)
            for (int i = x > 0 ? x - 1 : 0; i <= x + 1 && i < step.width; ++i) {
                const float d = valid_depth(step, i, j);
                sum += d;
                count += d > 0;
            }
        return count > 0 ? sum / count : step.settings.far;
    }

    void fill_row(const DenoiseStep& step, int y) {
        const float* rgb = step.color + (size_t)y * step.width * 3;
        f4* out = level[0] + (size_t)y * step.width;
        for (int x = 0; x < step.width; ++x, rgb += 3) {
            float r = rgb[0], g = rgb[1], b = rgb[2];
            float depth = valid_depth(step, x, y);
            if (!(std::fabs(r) <= kMostInput && std::fabs(g) <= kMostInput && std::fabs(b) <= kMostInput &&
                  std::fabs(step.depth[(size_t)y * step.width + x]) <= kMostInput))
                r = g = b = depth = 0;
            if (depth == 0) depth = filled_depth(step, x, y);
            out[x] = f4{0.25f * r + 0.5f * g + 0.25f * b, 0.5f * r - 0.5f * b, -0.25f * r + 0.5f * g - 0.25f * b, depth};
        }
    }

    void halve_row(int k, int y) {
        const int w = width[k - 1], h = height[k - 1];
        const f4* above = level[k - 1] + (size_t)(2 * y) * w;
        const f4* below = 2 * y + 1 < h ? above + w : above;
        f4* out = level[k] + (size_t)y * width[k];
        for (int x = 0; x < width[k]; ++x) {
            const int right = 2 * x + 1 < w ? 2 * x + 1 : 2 * x;
            out[x] = (above[2 * x] + above[right] + below[2 * x] + below[right]) * 0.25f;
        }
    }
};

// The level at `dx`, `dy` px (of level 0) from the centre of pixel (x, y) of level 0.
HUSH_INLINE f4 bilinear(const Pyramid& pyramid, int level, int x, int y, float dx, float dy) {
    const float scale = 1.0f / (1 << level);
    const int low = (1 << level) - 1;  // the place inside the texel stays exact
    const float inside_u = ((float)(x & low) + 0.5f + dx) * scale - 0.5f, inside_v = ((float)(y & low) + 0.5f + dy) * scale - 0.5f;
    const float floor_u = std::floor(inside_u), floor_v = std::floor(inside_v);
    const int column = (x >> level) + (int)floor_u, row = (y >> level) + (int)floor_v;
    const int w = pyramid.width[level], h = pyramid.height[level];
    auto clamp = [](int k, int size) { return k < 0 ? 0 : k >= size ? size - 1 : k; };
    const int i0 = clamp(column, w), i1 = clamp(column + 1, w), j0 = clamp(row, h), j1 = clamp(row + 1, h);
    const f4 *above = pyramid.level[level] + (size_t)j0 * w, *below = pyramid.level[level] + (size_t)j1 * w;
    const float s = inside_u - floor_u, t = inside_v - floor_v;
    const f4 top = above[i0] + (above[i1] - above[i0]) * s, bottom = below[i0] + (below[i1] - below[i0]) * s;
    return top + (bottom - top) * t;
}

// The kernel of one pixel.
struct Kernel {
    float lod, dx, dy;  // level of detail; px from one probe's offset of 1 to the next, along the major axis
    float weight[2];    // of the outer and the inner pair of probes
};

HUSH_INLINE Kernel kernel_at(const DenoiseStep& step, int x, int y) {
    auto clamp = [](int k, int size) { return k < 0 ? 0 : k >= size ? size - 1 : k; };
    f4 v = {0, 0, 0, 0};
    for (int j = -1; j <= 1; ++j)
        for (int i = -1; i <= 1; ++i) {
            const float* tap = step.neural_view + 4 * ((size_t)clamp(y + j, step.height) * step.width + clamp(x + i, step.width));
            const f4 values = {limited_view(tap[0]), limited_view(tap[1]), limited_view(tap[2]), limited_view(tap[3])};
            v += values * ((i ? 1.0f : 2.0f) * (j ? 1.0f : 2.0f) / 16);
        }
    const float floor = v[3] > 20 ? v[3] : std::log1p(std::exp(v[3]));
    const float ax = (v[1] > 0 ? v[1] : 0) + floor, ay = (v[0] > 0 ? v[0] : 0) + floor;
    const float z = std::tanh(v[2]) * std::sqrt(ax * ay + 1e-8f);
    const float mean = 0.5f * (ax + ay), half = 0.5f * (ax - ay);
    const float radius = std::sqrt(half * half + z * z + 1e-12f) - 1e-6f;
    const float minor = std::fmax(mean - radius, 1e-4f), major = std::fmax(mean + radius, minor);
    // The major direction leans slightly towards x, so that the isotropic kernel has one.
    const float u = half + mean / 32, length = std::sqrt(u * u + z * z + 1e-12f);
    const float c = u >= 0 ? length + u : z, s = u >= 0 ? z : length - u;
    const float unit = 1 / std::sqrt(c * c + s * s);
    const float ratio = minor / major;
    Kernel k;
    k.lod = std::fmin(std::fmax(std::log2(minor), 0.0f), 3.0f);
    k.dx = c * unit * minor;
    k.dy = s * unit * minor;
    const float outer = std::exp(-0.5f * 2.25f * ratio * ratio), inner = std::exp(-0.5f * 0.25f * ratio * ratio);
    k.weight[0] = outer / (2 * (outer + inner));
    k.weight[1] = inner / (2 * (outer + inner));
    return k;
}

HUSH_INLINE f4 filtered_at(const Pyramid& pyramid, const Kernel& kernel, int x, int y) {
    const int level = kernel.lod < 2 ? (int)kernel.lod : 2;
    const float blend = kernel.lod - (float)level;
    f4 sum = {0, 0, 0, 0};
    for (int probe = 0; probe < 4; ++probe) {
        const float offset = (float)probe - 1.5f;
        const float dx = offset * kernel.dx, dy = offset * kernel.dy;
        const f4 fine = bilinear(pyramid, level, x, y, dx, dy), coarse = bilinear(pyramid, level + 1, x, y, dx, dy);
        sum += (fine + (coarse - fine) * blend) * kernel.weight[probe == 0 || probe == 3 ? 0 : 1];
    }
    return sum;
}

// This frame's value on the denoised path, for columns left .. right - 1 of a row: Y, Co, Cg, anything.
HUSH_INLINE void filter_row(const DenoiseStep& step, const Pyramid& pyramid, int y, int left, int right, f4* out) {
    if (!step.settings.filter) {
        std::memcpy(out, pyramid.level[0] + (size_t)y * step.width + left, (size_t)(right - left) * sizeof(f4));
        return;
    }
    if (!step.settings.zero_shot && step.neural_view) {
        for (int x = left; x < right; ++x) out[x - left] = filtered_at(pyramid, kernel_at(step, x, y), x, y);
        return;
    }
    // Zero-shot: both axes are 2, so the probes read level 1 alone, at x - 3, x - 1, x + 1, x + 3: for an even column
    // texels m - 2 .. m + 2 around m = x / 2 with the weights below, for an odd one with the same, mirrored.
    const float outer = std::exp(-0.5f * 2.25f), inner = std::exp(-0.5f * 0.25f), sum = 2 * (outer + inner);
    const float a = outer / sum, b = inner / sum;
    const float weights[5] = {0.75f * a, 0.25f * a + 0.75f * b, 0.25f * b + 0.75f * b, 0.25f * b + 0.75f * a, 0.25f * a};
    const int w = pyramid.width[1], h = pyramid.height[1];
    const int above = (y + 1) / 2 - 1, below = above + 1;
    const float t = y % 2 ? 0.25f : 0.75f;
    const f4* top = pyramid.level[1] + (size_t)(above < 0 ? 0 : above >= h ? h - 1 : above) * w;
    const f4* bottom = pyramid.level[1] + (size_t)(below >= h ? h - 1 : below) * w;
    auto texel = [&](int m) {
        m = m < 0 ? 0 : m >= w ? w - 1 : m;
        return top[m] + (bottom[m] - top[m]) * t;
    };
    int m = left / 2;
    f4 window[5] = {texel(m - 2), texel(m - 1), texel(m), texel(m + 1), texel(m + 2)};
    for (int x = left; x < right; ++x) {
        if (x / 2 != m) {
            m = x / 2;
            for (int k = 0; k < 4; ++k) window[k] = window[k + 1];
            window[4] = texel(m + 2);
        }
        f4 value = {0, 0, 0, 0};
        for (int k = 0; k < 5; ++k) value += window[k] * weights[x % 2 ? 4 - k : k];
        out[x - left] = value;
    }
}

}  // namespace hush::HUSH_ISA
