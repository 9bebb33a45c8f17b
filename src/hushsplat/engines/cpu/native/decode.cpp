// Decodes a visibility sample: to colour, and to V0 .. V3 of the denoiser's payload. Both are means over the samples.
#include <stdexcept>
#include <string>

#include "harmonics.h"
#include "threads.h"
#include "transpose.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kRows = 32;      // of the picture, that one job decodes
constexpr int kWide = 512;     // px: of blocks; long rows are read faster
constexpr size_t kAhead = 64;  // px: how early the memory of a pixel's Gaussian is asked for
constexpr int kSide = 16;      // px: of blocks whose Gaussians are gathered first
constexpr int kMost = kSide * kSide;

// Ids tell where memory is read, so that each is looked at; they may come from anybody.
[[noreturn]] __attribute__((noinline, cold)) void refuse(int32_t id, int count) {
    throw std::out_of_range("primitive " + std::to_string(id) + " was seen, but there are " + std::to_string(count));
}

HUSH_INLINE bool hits(int32_t id, int count) {
    if ((uint32_t)id < (uint32_t)count) return true;
    if (id != -1) refuse(id, count);
    return false;
}

// Colours that are dear to compute: neighbouring pixels are often won by the same Gaussians, so that those of a block
// are computed once for each, or hardly more often. No pixel waits for the one before: each leaves its number where
// those of the same Gaussian do, then all look who was the last there.
struct BlockColors {
    static constexpr int kHashBits = 12, kNobody = kMost;
    int32_t winner[kMost];
    uint16_t last[1 << kHashBits];  // by hash: the last pixel of this Gaussian, or of another one; of any block
    uint16_t from[kMost];           // the pixel whose colour each has
    uint16_t needed[kMost];         // pixels whose colour is computed
    alignas(64) f32x4 color[kMost + 1];
    int pixels, count;

    static HUSH_MEMBER uint32_t hash(int32_t id) { return (uint32_t)id * 0x9E3779B9u >> (32 - kHashBits); }

    HUSH_MEMBER void gather(const int32_t* id, int width, int columns, int rows, int most) {
        pixels = 0;
        for (int y = 0; y < rows; ++y)
            for (int x = 0; x < columns; ++x, ++pixels) {
                const int32_t seen = id[(size_t)y * width + x];
                winner[pixels] = hits(seen, most) ? seen : -1;
                last[hash(winner[pixels])] = (uint16_t)pixels;
            }
        count = 0;
        for (int k = 0; k < pixels; ++k) {
            const int other = last[hash(winner[k])];
            const bool same = winner[other] == winner[k], none = winner[k] < 0;
            from[k] = (uint16_t)(none ? (int)kNobody : same ? other : k);
            needed[count] = (uint16_t)k;
            count += from[k] == k;
        }
    }
};

// Calls pixel(index) for all pixels of the picture, and ask(index) some pixels before.
template <class Ask, class Pixel>
void each_pixel(int width, int height, int threads, const Ask& asked, const Pixel& of_pixel) {
    const int columns = (width + kWide - 1) / kWide, rows = (height + kRows - 1) / kRows;
    const size_t last = (size_t)width * height - 1;
    parallel_for(rows, threads, [&](int block_row) {
        const Ask ask = asked;  // with what they captured: the compiler then knows that no pixel changes it
        const Pixel pixel = of_pixel;
        for (int column = 0; column < columns; ++column) {
            const int x0 = column * kWide, x1 = x0 + kWide < width ? x0 + kWide : width;
            const int y1 = (block_row + 1) * kRows < height ? (block_row + 1) * kRows : height;
            for (int y = block_row * kRows; y < y1; ++y) {
                const size_t row = (size_t)y * width;
                for (size_t k = row + x0; k < row + x1; ++k) {
                    ask(k + kAhead < last ? k + kAhead : last);
                    pixel(k);
                }
            }
        }
    });
}

// Finds the colours of a block's winners; `id` is that of its first pixel, `width` that of the picture.
void find_colors(const int32_t* id, int width, int columns, int rows, const Colors& colors, const float* eye,
                 f32x4 background, BlockColors& block) {
    block.gather(id, width, columns, rows, colors.count);
    for (int k = 0; k < block.count; ++k) prefetch_color(colors, block.winner[block.needed[k]]);
    for (int k = 0; k < block.count; ++k)
        block.color[block.needed[k]] = color_of(colors, eye, block.winner[block.needed[k]]);
    block.color[BlockColors::kNobody] = background;
}

// Writes a row of pixels. All but the last are written with a fourth float, that the next one replaces.
template <class ColorOf>
HUSH_INLINE void write_row(int columns, float* out, const ColorOf& color_at) {
    for (int x = 0; x + 1 < columns; ++x, out += 3) {
        const f32x4 color = color_at(x);
        std::memcpy(out, &color, 16);
    }
    const f32x4 color = color_at(columns - 1);
    std::memcpy(out, &color, 12);
}

}  // namespace

void decode(const int32_t* id, int samples, int width, int height, const Camera& camera, const Colors& seen,
            int threads, const float* background, float* color) {
    const Colors colors = seen;
    const float* eye = camera.eye;
    const size_t pixels = (size_t)width * height;
    const f32x4 back = {background[0], background[1], background[2], 0};
    const float share = 1.0f / samples;
    auto write = [=](size_t k, f32x4 sum) {
        sum *= share;
        for (int c = 0; c < 3; ++c) color[3 * k + c] = sum[c];
    };
    if (colors.coefficients == 1) {
        auto ask = [=](size_t k) {
            if (id[k] >= 0) __builtin_prefetch(colors.sh + 3 * (size_t)id[k]);
        };
        return each_pixel(width, height, threads, ask, [=](size_t k) {
            f32x4 sum = {0, 0, 0, 0};
            for (int s = 0; s < samples; ++s) {
                const int32_t winner = id[s * pixels + k];
                sum += hits(winner, colors.count) ? color_of(colors, eye, winner) : back;
            }
            write(k, sum);
        });
    }
    parallel_for((height + kSide - 1) / kSide, threads, [&](int block_row) {
        BlockColors block;
        const int y0 = block_row * kSide, rows = height - y0 < kSide ? height - y0 : kSide;
        for (int x0 = 0; x0 < width; x0 += kSide) {
            const int columns = width - x0 < kSide ? width - x0 : kSide;
            const size_t first = (size_t)y0 * width + x0;
            auto write_block = [&](const auto& color_at) {
                for (int y = 0; y < rows; ++y)
                    write_row(columns, color + 3 * (first + (size_t)y * width),
                              [&](int x) { return color_at(y * columns + x); });
            };
            find_colors(id + first, width, columns, rows, colors, eye, back, block);
            if (samples == 1) {
                write_block([&](int k) { return block.color[block.from[k]]; });
                continue;
            }
            f32x4 sums[kMost];
            for (int k = 0; k < block.pixels; ++k) sums[k] = block.color[block.from[k]];
            for (int s = 1; s < samples; ++s) {
                find_colors(id + s * pixels + first, width, columns, rows, colors, eye, back, block);
                for (int k = 0; k < block.pixels; ++k) sums[k] += block.color[block.from[k]];
            }
            write_block([&](int k) { return sums[k] * share; });
        }
    });
}

void decode_view(const int32_t* id, const float* depth, int samples, int width, int height, const float* payload,
                 int count, const float* axes, int threads, float* view) {
    const size_t pixels = (size_t)width * height;
    const float share = 1.0f / samples;
    auto axis = [&](int c) { return f32x4{axes[3 * c], axes[3 * c + 1], axes[3 * c + 2], 0}; };
    const f32x4 up = axis(0), right = axis(1), forward = axis(2);
    auto ask = [=](size_t k) {
        if (id[k] < 0) return;
        __builtin_prefetch(payload + 10 * (size_t)id[k]);
        __builtin_prefetch(payload + 10 * (size_t)id[k] + 9);
    };
    each_pixel(width, height, threads, ask, [=](size_t k) {
        f32x4 sum = {0, 0, 0, 0};
        for (int s = 0; s < samples; ++s) {
            const int32_t winner = id[s * pixels + k];
            if (!hits(winner, count)) continue;
            const float *p = payload + 10 * (size_t)winner, nearness = 1 / depth[s * pixels + k];
            f32x4 x = load_four(p) * up, y = load_four(p + 3) * right, z = load_four(p + 6) * forward,
                  none = {0, 0, 0, 0};
            transpose_four(x, y, z, none);
            const f32x4 dots = x + y + z;
            sum += f32x4{__builtin_fabsf(dots[0]) * nearness, __builtin_fabsf(dots[1]) * nearness,
                         __builtin_fabsf(dots[2]), p[9]};
        }
        sum *= share;
        std::memcpy(view + 4 * k, &sum, 16);
    });
}

}  // namespace hush::HUSH_ISA
