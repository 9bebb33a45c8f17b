// Decodes a visibility sample to colour: the mean over its samples, the background where nothing was hit.
#include "harmonics.h"
#include "threads.h"

namespace hush::HUSH_ISA {

void decode(const int32_t* id, int samples, int width, int height, const Camera& camera, const Colors& colors, int threads,
            const float* background, float* color) {
    const size_t pixels = (size_t)width * height;
    const f4 back = {background[0], background[1], background[2], 0};
    const float share = 1.0f / samples;
    parallel_for((height + 7) / 8, threads, [&](int job) {
        size_t begin = (size_t)job * 8 * width, end = begin + 8 * (size_t)width;
        if (end > pixels) end = pixels;
        for (size_t k = begin; k < end; ++k) {
            f4 sum = {0, 0, 0, 0};
            for (int s = 0; s < samples; ++s) {
                int32_t winner = id[s * pixels + k];
                sum += winner < 0 ? back : color_of(colors, camera.eye, winner);
            }
            for (int c = 0; c < 3; ++c) color[3 * k + c] = sum[c] * share;
        }
    });
}

}  // namespace hush::HUSH_ISA
