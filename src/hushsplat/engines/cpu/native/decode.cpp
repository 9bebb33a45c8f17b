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
constexpr uint16_t kNobody = 0xffff;  // in place of a winner's colour: the background

// Colours that are dear to compute: neighbouring pixels are often won by the same Gaussians. Those of a block are
// gathered first, each once or hardly more often, so that all come from memory at the same time.
struct BlockColors {
    static constexpr int kPlaces = 4 * kMost;
    int32_t id[kMost];
    alignas(64) f32x4 color[kMost];
    uint16_t place[kPlaces] = {};  // by hash, where in `id` a Gaussian may be; old entries do no harm
    int count;

    // Where the colour will be.
    HUSH_MEMBER uint16_t add(const Colors& colors, int32_t wanted) {
        uint16_t& at = place[(uint32_t)wanted * 0x9E3779B9u >> 22];
        const bool known = (int)at < count && id[at] == wanted;  // mostly as good as random: no branch
        id[count] = wanted;
        at = known ? at : (uint16_t)count;
        count += !known;
        prefetch_color(colors, wanted);
        return at;
    }
};
static_assert(BlockColors::kPlaces == 1 << (32 - 22), "as many as the hash has bits");

// Ids tell where memory is read, so that each is looked at; they may come from anybody.
[[noreturn]] __attribute__((noinline, cold)) void refuse(int32_t id, int count) {
    throw std::out_of_range("primitive " + std::to_string(id) + " was seen, but there are " + std::to_string(count));
}

HUSH_INLINE bool hits(int32_t id, int count) {
    if ((uint32_t)id < (uint32_t)count) return true;
    if (id != -1) refuse(id, count);
    return false;
}

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

// Adds the colours of a block's winners to `sums`; `id` is that of its first pixel, `width` that of the picture.
void add_block(const int32_t* id, int width, int columns, int rows, const Colors& colors, const float* eye,
               f32x4 background, BlockColors& block, f32x4* sums) {
    uint16_t at[kMost];
    block.count = 0;
    for (int y = 0, k = 0; y < rows; ++y)
        for (int x = 0; x < columns; ++x, ++k) {
            const int32_t winner = id[(size_t)y * width + x];
            at[k] = hits(winner, colors.count) ? block.add(colors, winner) : kNobody;
        }
    for (int k = 0; k < block.count; ++k) block.color[k] = color_of(colors, eye, block.id[k]);
    for (int k = 0; k < rows * columns; ++k) sums[k] += at[k] == kNobody ? background : block.color[at[k]];
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
        static thread_local BlockColors block;
        const int y0 = block_row * kSide, rows = height - y0 < kSide ? height - y0 : kSide;
        for (int x0 = 0; x0 < width; x0 += kSide) {
            const int columns = width - x0 < kSide ? width - x0 : kSide;
            const size_t first = (size_t)y0 * width + x0;
            f32x4 sums[kMost] = {};
            for (int s = 0; s < samples; ++s)
                add_block(id + s * pixels + first, width, columns, rows, colors, eye, back, block, sums);
            for (int y = 0, k = 0; y < rows; ++y)
                for (int x = 0; x < columns; ++x, ++k) write(first + (size_t)y * width + x, sums[k]);
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
