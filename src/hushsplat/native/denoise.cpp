// One step of the denoiser as a sweep over rows: each job owns a block of the picture and carries a few rows of every
// intermediate in rings that stay in cache, so that the state is read once and written once.
#include <cmath>

#include "denoise.h"
#include "filter.h"
#include "reproject.h"
#include "stabilise.h"
#include "threads.h"
#include "trust.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kBlockWidth = 256, kBlockHeight = 64;  // px: what a job owns
constexpr int kHalo = 3;                             // px: two depthwise layers and the stabilisation's neighbourhood

// Rows of one intermediate, the last few of them; columns from x0 - kHalo on, with one more on either side.
template <int Floats, int Rows>
struct Ring {
    static constexpr int kColumns = (kBlockWidth + 2 * kHalo + 2 + 7) / 8 * 8 + 8;
    alignas(64) float values[Rows][kColumns * Floats];
    float* row(int y) { return values[(y + 4 * Rows) % Rows] + Floats; }  // y >= -4 · Rows
    void clear_row(int y) { std::memset(values[(y + 4 * Rows) % Rows], 0, sizeof values[0]); }
};

struct Sweep {
    Ring<kStateFloats, 4> history;      // reprojected state; relative depth difference and validity in its last channels
    Ring<8, 3> encoded, hidden;         // of the accumulated path's predictor
    Ring<8, 4> features;                // of the denoised path's head
    Ring<4, 4> composite;               // RGB
    alignas(64) float trust[2][Ring<1, 1>::kColumns];
};

void sweep_block(const DenoiseStep& step, const Pyramid& pyramid, int x0, int x1, int y0, int y1, Sweep& sweep) {
    // Columns whose values are needed: [left, right) inside the picture.
    const int left = x0 - kHalo > 0 ? x0 - kHalo : 0, right = x1 + kHalo < step.width ? x1 + kHalo : step.width;
    const int columns = right - left, first = left - (x0 - kHalo);
    const bool learned = step.settings.trust == Trust::learned;
    auto inside = [&](int y) { return y >= 0 && y < step.height; };
    for (int y = y0 - kHalo; y < y1 + kHalo; ++y) {
        // Reproject and encode row y.
        sweep.encoded.clear_row(y);
        sweep.features.clear_row(y);
        if (inside(y)) {
            float* history = sweep.history.row(y) + first * kStateFloats;
            float* features = sweep.features.row(y) + first * 8;
            float* encoded = sweep.encoded.row(y) + first * 8;
            reproject_row(step, pyramid, y, left, right, history);
            trust_features(step, pyramid, y, left, right, history, encoded, features);
            if (learned) encode_row(*step.weights, encoded, columns);
        }
        // The predictor's middle, row y - 1.
        if (y - 1 >= y0 - 2) {
            const int at = y - 1;
            sweep.hidden.clear_row(at);
            if (inside(at) && learned)
                hidden_row(*step.weights, sweep.encoded.row(at - 1) + first * 8, sweep.encoded.row(at) + first * 8,
                           sweep.encoded.row(at + 1) + first * 8, sweep.hidden.row(at) + first * 8, columns);
        }
        // Trust, filter, means and gate, row y - 2.
        if (y - 2 >= y0 - 1 && inside(y - 2)) {
            const int at = y - 2;
            const float* history = sweep.history.row(at) + first * kStateFloats;
            float* trust[2] = {sweep.trust[0], sweep.trust[1]};
            if (learned)
                accumulated_trust_row(*step.weights, sweep.hidden.row(at - 1) + first * 8, sweep.hidden.row(at) + first * 8,
                                      sweep.hidden.row(at + 1) + first * 8, columns, trust[0]);
            denoised_trust_row(*step.weights, sweep.features.row(at - 1) + first * 8, sweep.features.row(at) + first * 8,
                               sweep.features.row(at + 1) + first * 8, columns, trust[1]);
            compose_row(step, pyramid, at, left, right, x0, x1, at >= y0 && at < y1, history, trust,
                        sweep.composite.row(at) + first * 4);
        }
        // Stabilise and show, row y - 3.
        if (y - 3 >= y0 && y - 3 < y1) {
            const int at = y - 3, above = at > 0 ? at - 1 : at, below = at + 1 < step.height ? at + 1 : at;
            stabilise_row(step, at, x0, x1, sweep.composite.row(above) + kHalo * 4, sweep.composite.row(at) + kHalo * 4,
                          sweep.composite.row(below) + kHalo * 4, sweep.history.row(at) + kHalo * kStateFloats);
        }
    }
}

}  // namespace

void denoise(const DenoiseStep& step, int threads) {
    Pyramid pyramid(step, threads);
    const int columns = (step.width + kBlockWidth - 1) / kBlockWidth, rows = (step.height + kBlockHeight - 1) / kBlockHeight;
    parallel_for(columns * rows, threads, [&](int job) {
        static thread_local Buffer<Sweep> sweep(1);
        const int x0 = job % columns * kBlockWidth, y0 = job / columns * kBlockHeight;
        const int x1 = x0 + kBlockWidth < step.width ? x0 + kBlockWidth : step.width;
        const int y1 = y0 + kBlockHeight < step.height ? y0 + kBlockHeight : step.height;
        sweep_block(step, pyramid, x0, x1, y0, y1, sweep[0]);
    });
}

}  // namespace hush::HUSH_ISA
