// Decodes a visibility sample to colour: the mean over its samples, the background where nothing was hit.
#include "harmonics.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

// Neighbouring pixels are often won by the same Gaussians: their colours are kept for a while, one place per hash.
struct ColorCache {
    static constexpr int kPlaces = 512;
    alignas(64) f4 color[kPlaces];
    int32_t id[kPlaces];

    ColorCache() {
        for (int32_t& k : id) k = -1;
    }

    HUSH_MEMBER f4 find(const Colors& colors, const float* eye, int32_t wanted) {
        const uint32_t place = (uint32_t)wanted * 0x9E3779B9u >> 23;
        if (id[place] != wanted) {
            color[place] = color_of(colors, eye, wanted);
            id[place] = wanted;
        }
        return color[place];
    }
};

}  // namespace

void decode(const int32_t* id, int samples, int width, int height, const Camera& camera, const Colors& colors, int threads,
            const float* background, float* color) {
    constexpr int kBlock = 32;  // px: side of the squares that share a cache
    const size_t pixels = (size_t)width * height;
    const int columns = (width + kBlock - 1) / kBlock, rows = (height + kBlock - 1) / kBlock;
    const f4 back = {background[0], background[1], background[2], 0};
    const float share = 1.0f / samples;
    parallel_for(rows, threads, [&](int block_row) {
        for (int column = 0; column < columns; ++column) {
            ColorCache cache;
            const int x1 = (column + 1) * kBlock < width ? (column + 1) * kBlock : width;
            const int y1 = (block_row + 1) * kBlock < height ? (block_row + 1) * kBlock : height;
            for (int y = block_row * kBlock; y < y1; ++y)
                for (int x = column * kBlock; x < x1; ++x) {
                    const size_t k = (size_t)y * width + x;
                    f4 sum = {0, 0, 0, 0};
                    for (int s = 0; s < samples; ++s) {
                        const int32_t winner = id[s * pixels + k];
                        sum += winner < 0 ? back : cache.find(colors, camera.eye, winner);
                    }
                    sum *= share;
                    for (int c = 0; c < 3; ++c) color[3 * k + c] = sum[c];
                }
        }
    });
}

}  // namespace hush::HUSH_ISA
