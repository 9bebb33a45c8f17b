// This frame in YCoCg at four resolutions, for the filter; and its depth without holes.
#pragma once

#include "denoise.h"
#include "kernels.h"
#include "recycle.h"
#include "threads.h"
#include "transpose.h"

namespace hush::HUSH_ISA {

constexpr float kMostInput = 1e9f;  // a colour or depth beyond this is no colour and no depth

HUSH_INLINE int clamp_index(int k, int size) { return k < 0 ? 0 : k >= size ? size - 1 : k; }

// Texels of Y, Co, Cg; in level 0 the fourth is the hole-filled depth. Each level halves the one before, rounded up.
struct Pyramid {
    static constexpr int kLevels = 4;
    int width[kLevels], height[kLevels];
    int begin[kLevels];  // texel
    float* texels;       // four floats each

    Pyramid(const DenoiseStep& step, int threads) : memory(sizeof(f32x4) * texels_for(step)) {
        texels = static_cast<float*>(memory.get());
        int count = 0;
        for (int k = 0; k < kLevels; ++k) {
            width[k] = k ? (width[k - 1] + 1) / 2 : step.width;
            height[k] = k ? (height[k - 1] + 1) / 2 : step.height;
            begin[k] = count;
            count += width[k] * height[k];
        }
        store_four(texels + 4 * (size_t)count, f32x4{});  // the filter reads a texel beyond and weighs it with 0
        parallel_for((step.height + kBand - 1) / kBand, threads, [&](int band) { fill_band(step, band); });
    }

    const float* row(int level, int y) const { return texels + 4 * (begin[level] + (size_t)y * width[level]); }

    // Asks for eight pixels of level 0 to be near when their row's turn comes.
    HUSH_MEMBER void prefetch_pixels(int x, int y) const {
        const float* texel = texels + 4 * ((size_t)y * width[0] + x);
        __builtin_prefetch(texel, 0, 2);
        __builtin_prefetch(texel + 16, 0, 2);
    }

    // Y, Co, Cg and depth of eight pixels of level 0; beyond the end of a row they are those of whatever follows.
    HUSH_MEMBER void load_pixels(int x, int y, f32x8 channels[4]) const { load_quads(row(0, y) + 4 * x, 4, channels); }

private:
    Recycled memory;

    static size_t texels_for(const DenoiseStep& step) {  // a third more than level 0, and a row and column per level
        return (size_t)(step.width + 8) * (step.height + 8) * 4 / 3 + 64;
    }

    static constexpr int kBand = 32;  // rows of level 0 that a job fills: four of level 3

    void fill_band(const DenoiseStep& step, int band) {
        const int stride = (step.width + 7) / 8 * 8 + 16, y0 = band * kBand,
                  y1 = y0 + kBand < step.height ? y0 + kBand : step.height;
        static thread_local Buffer<float> lines;
        lines.resize(3 * (size_t)stride);
        auto line = [&](int y) {
            return lines.get() + (y + 3) % 3 * (size_t)stride + 8;
        };  // reaches a column beyond either end
        measured_depth(step, y0 - 1, line(y0 - 1));
        measured_depth(step, y0, line(y0));
        for (int y = y0; y < y1; ++y) {
            measured_depth(step, y + 1, line(y + 1));
            const float* const depth[3] = {line(y - 1), line(y), line(y + 1)};
            fill_row(step, y, depth);
        }
        for (int k = 1; k < kLevels; ++k)
            for (int y = y0 >> k; y < (y0 + kBand) >> k && y < height[k]; ++y) halve_row(k, y);
    }

    // RGB of eight pixels, of which those before the end of the row can be read.
    static HUSH_MEMBER void load_color(const DenoiseStep& step, int x, int y, f32x8 rgb[4]) {
        const float* color = step.color + 3 * ((size_t)y * step.width + x);
        // A load of four floats runs one into the next pixel, and after the last one there is none.
        if (x + 8 < step.width)
            load_quads(color, 3, rgb);
        else
            load_some_quads(color, 3, 3, step.width - x, rgb);
    }

    static HUSH_MEMBER i32x8 fits(f32x8 v) {
        return (v <= splat(kMostInput)) & (v >= splat(-kMostInput));
    }  // false for NaN
    static HUSH_MEMBER i32x8 fits(const f32x8 rgb[4]) { return fits(rgb[0]) & fits(rgb[1]) & fits(rgb[2]); }

    // Depth of a row; 0 where there is none and outside the picture, -1 where the pixel cannot be used.
    static void measured_depth(const DenoiseStep& step, int y, float* out) {
        const bool inside = y >= 0 && y < step.height;
        out[-1] = 0;
        for (int x = 0; x <= step.width; x += 8) {
            f32x8 found = splat(0);
            if (inside && x < step.width) {
                f32x8 rgb[4];
                load_color(step, x, y, rgb);
                const float* depth = step.depth + (size_t)y * step.width + x;
                alignas(32) float some[8] = {};
                for (int k = 0; x + 8 > step.width && x + k < step.width; ++k) some[k] = depth[k];
                const f32x8 d = load(x + 8 > step.width ? some : depth);
                found = select(fits(rgb) & fits(d), max(d, splat(0)), splat(-1));
            }
            store(out + x, found);
        }
    }

    // The mean of the depths around, else the far plane.
    static HUSH_MEMBER f32x8 borrowed_depth(const float* const depth[3], int x, float far) {
        f32x8 sum = splat(0), count = splat(0);
        for (int j = 0; j < 3; ++j)
            for (int i = -1; i <= 1; ++i) {
                const f32x8 d = load(depth[j] + x + i);
                sum = sum + max(d, splat(0));
                count = count + select(d > splat(0), splat(1), splat(0));
            }
        return select(count > splat(0), sum / max(count, splat(1)), splat(far));
    }

    void fill_row(const DenoiseStep& step, int y, const float* const depth[3]) {
        float* out = texels + 4 * (size_t)y * step.width;
        for (int x = 0; x < step.width; x += 8) {
            f32x8 rgb[4], own = load(depth[1] + x);
            load_color(step, x, y, rgb);
            const i32x8 usable = own >= splat(0), hit = own > splat(0);
            if (any(~hit)) own = select(hit, own, borrowed_depth(depth, x, step.settings.far_depth));
            const f32x8 zero = splat(0), r = select(usable, rgb[0], zero), g = select(usable, rgb[1], zero),
                        b = select(usable, rgb[2], zero);
            const f32x8 half_g = splat(0.5f) * g, sides = splat(0.25f) * (r + b);
            const f32x8 texel[4] = {half_g + sides, splat(0.5f) * (r - b), half_g - sides, own};
            if (x + 8 <= step.width) {
                store_quads(out + 4 * x, 4, texel);
                continue;
            }
            alignas(32) float block[8 * 4];
            store_quads(block, 4, texel);
            std::memcpy(out + 4 * x, block, (size_t)(step.width - x) * sizeof(f32x4));
        }
    }

    void halve_row(int k, int y) {
        const int w = width[k - 1], below = 2 * y + 1 < height[k - 1] ? 4 * w : 0;
        const float* in = row(k - 1, 2 * y);
        float* out = texels + 4 * (begin[k] + (size_t)y * width[k]);
        for (int x = 0; x < width[k]; ++x, in += 8, out += 4) {
            const int right = 2 * x + 1 < w ? 4 : 0;
            const f32x4 sum =
                (load_four(in) + load_four(in + right)) + (load_four(in + below) + load_four(in + below + right));
            store_four(out, sum * 0.25f);
        }
    }
};

}  // namespace hush::HUSH_ISA
