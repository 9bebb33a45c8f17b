// Decodes a visibility sample: to colour, and to V0 .. V3 of the denoiser's payload. Both are means over the samples.
#include <stdexcept>
#include <string>

#include "harmonics.h"
#include "threads.h"
#include "transpose.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kBlock = 32;     // px: side of the squares that share a cache of colours
constexpr int kWide = 512;     // px: of blocks that need none; long rows are read faster
constexpr size_t kAhead = 64;  // px: how early the memory of a pixel's Gaussian is asked for

// Colours that are dear to compute: neighbouring pixels are often won by the same Gaussians, so theirs are kept for a
// while, one place per hash.
struct ColorCache {
    static constexpr int kPlaces = 512;
    alignas(64) f32x4 color[kPlaces];
    int32_t id[kPlaces];

    void clear() {
        for (int32_t& k : id) k = -1;
    }

    HUSH_MEMBER f32x4 find(const Colors& colors, const float* eye, int32_t wanted) {
        const uint32_t place = (uint32_t)wanted * 0x9E3779B9u >> 23;
        if (id[place] != wanted) {
            color[place] = color_of(colors, eye, wanted);
            id[place] = wanted;
        }
        return color[place];
    }
};

// Ids tell where memory is read, so that each is looked at; they may come from anybody.
[[noreturn]] __attribute__((noinline, cold)) void refuse(int32_t id, int count) {
    throw std::out_of_range("primitive " + std::to_string(id) + " was seen, but there are " + std::to_string(count));
}

HUSH_INLINE bool hits(int32_t id, int count) {
    if ((uint32_t)id < (uint32_t)count) return true;
    if (id != -1) refuse(id, count);
    return false;
}

// Calls begin() for each block of the picture, then pixel(index) for all of its pixels, and ask(index) some pixels
// before.
template <class Begin, class Ask, class Pixel>
void each_pixel(int width, int height, int block_width, int threads, const Begin& begin, const Ask& asked,
                const Pixel& of_pixel) {
    const int columns = (width + block_width - 1) / block_width, rows = (height + kBlock - 1) / kBlock;
    const size_t last = (size_t)width * height - 1;
    parallel_for(rows, threads, [&](int block_row) {
        const Ask ask = asked;  // with what they captured: the compiler then knows that no pixel changes it
        const Pixel pixel = of_pixel;
        for (int column = 0; column < columns; ++column) {
            begin();
            const int x0 = column * block_width, x1 = x0 + block_width < width ? x0 + block_width : width;
            const int y1 = (block_row + 1) * kBlock < height ? (block_row + 1) * kBlock : height;
            for (int y = block_row * kBlock; y < y1; ++y) {
                const size_t row = (size_t)y * width;
                for (size_t k = row + x0; k < row + x1; ++k) {
                    ask(k + kAhead < last ? k + kAhead : last);
                    pixel(k);
                }
            }
        }
    });
}

}  // namespace

void decode(const int32_t* id, int samples, int width, int height, const Camera& camera, const Colors& seen,
            int threads, const float* background, float* color) {
    const Colors colors = seen;
    const float* eye = camera.eye;
    const size_t pixels = (size_t)width * height;
    const f32x4 back = {background[0], background[1], background[2], 0};
    const float share = 1.0f / samples;
    const bool dear = colors.coefficients > 1;
    static thread_local ColorCache cache;
    auto begin = [=] {
        if (dear) cache.clear();
    };
    auto ask = [=](size_t k) {
        if (!dear && id[k] >= 0) __builtin_prefetch(colors.sh + 3 * (size_t)id[k]);
    };
    each_pixel(width, height, dear ? kBlock : kWide, threads, begin, ask, [=](size_t k) {
        f32x4 sum = {0, 0, 0, 0};
        for (int s = 0; s < samples; ++s) {
            const int32_t winner = id[s * pixels + k];
            if (hits(winner, colors.count))
                sum += dear ? cache.find(colors, eye, winner) : color_of(colors, eye, winner);
            else
                sum += back;
        }
        sum *= share;
        for (int c = 0; c < 3; ++c) color[3 * k + c] = sum[c];
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
    each_pixel(
        width, height, kWide, threads, [] {}, ask,
        [=](size_t k) {
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
