// One step of the denoiser as a sweep over rows: each job owns a block of the picture and carries a few rows of every
// intermediate in rings that stay in cache, so that the state is read once and written once.
#include "compose.h"
#include "denoise.h"
#include "filter.h"
#include "pyramid.h"
#include "reproject.h"
#include "rows.h"
#include "stabilise.h"
#include "threads.h"
#include "trust.h"

namespace hush::HUSH_ISA {
namespace {

struct Block {
    int x0, x1, y0, y1;  // px: what a job owns
};

Owned owned_part(const Block& block, int y) { return {block.x0, block.x1, y >= block.y0 && y < block.y1}; }

struct Sweep {
    Ring<kStateFloats, 5> history;  // reprojected state; relative depth difference and validity in its last channels
    Ring<8, 3> encoded, hidden;     // of the accumulated path's predictor
    Ring<8, 4> features;            // of the denoised path's head
    Ring<3, 4> composite;           // RGB
    Ring<8, 1> inputs;              // of the accumulated path's predictor
    Ring<1, 1> motion, trust[2];
    Taps taps;

    void run(const DenoiseStep& step, const Pyramid& pyramid, const Block& block);
};

void Sweep::run(const DenoiseStep& step, const Pyramid& pyramid, const Block& block) {
    // Columns whose values are needed: [left, right) inside the picture.
    const int left = block.x0 - kHalo > 0 ? block.x0 - kHalo : 0;
    const int right = block.x1 + kHalo < step.width ? block.x1 + kHalo : step.width;
    const int columns = right - left, owned = block.x0 - left;
    const bool learned = step.settings.trust == Trust::learned && !step.is_static;
    auto inside = [&](int y) { return y >= 0 && y < step.height; };
    auto around = [](auto& ring, int y, const float* rows[3]) {
        for (int j = 0; j < 3; ++j) rows[j] = ring.row(y + j - 1);
    };
    const float* rows[3];
    for (int y = block.y0 - kHalo; y < block.y1 + kHalo; ++y) {
        // Reproject and encode row y.
        if (inside(y)) {
            reproject_row(step, pyramid, y, left, right, taps, history.row(y), motion.row(0));
            trust_features(step, pyramid, y, left, right, history.row(y), motion.row(0), inputs.row(0),
                           features.row(y));
            features.clear_sides(y, columns);
            if (learned) {
                encode_row(*step.weights, inputs.row(0), encoded.row(y), columns);
                encoded.clear_sides(y, columns);
            }
        } else {
            features.clear_row(y);
            encoded.clear_row(y);
        }
        // The predictor's middle, row y - 1.
        if (learned && y - 1 >= block.y0 - 3) {
            const int at = y - 1;
            if (inside(at)) {
                around(encoded, at, rows);
                hidden_row(*step.weights, rows, hidden.row(at), columns);
                hidden.clear_sides(at, columns);
            } else {
                hidden.clear_row(at);
            }
        }
        // Trust, filter and means, row y - 2.
        if (y - 2 >= block.y0 - 2 && inside(y - 2)) {
            const int at = y - 2;
            if (learned) {
                around(hidden, at, rows);
                accumulated_trust_row(*step.weights, rows, trust[0].row(0), columns);
            }
            around(features, at, rows);
            denoised_trust_row(*step.weights, rows, trust[1].row(0), columns);
            const float* const trusts[2] = {trust[0].row(0), trust[1].row(0)};
            accumulate_row(step, pyramid, at, left, right, owned_part(block, at), history.row(at), trusts);
        }
        // Smoothing and gate, row y - 3.
        if (y - 3 >= block.y0 - 1 && inside(y - 3)) {
            const int at = y - 3;
            for (int j = 0; j < 3; ++j) rows[j] = history.row(clamp_index(at + j - 1, step.height));
            compose_row(step, pyramid, at, left, right, owned_part(block, at), rows, composite.row(at));
        }
        // Stabilise and show, row y - 4.
        if (y - 4 >= block.y0 && y - 4 < block.y1) {
            const int at = y - 4;
            for (int j = 0; j < 3; ++j) rows[j] = composite.row(clamp_index(at + j - 1, step.height)) + owned;
            stabilise_row(step, pyramid, at, block.x0, block.x1, rows, history.row(at) + owned);
        }
    }
}

// How the picture is shared out: few halos, but enough jobs that no thread waits long for the last one.
struct Grid {
    int columns, rows, width, height;  // blocks; px of a block

    Grid(const DenoiseStep& step, int threads, int halo) {
        constexpr int kLeastHeight = 32, kJobsPerThread = 6;
        columns = (step.width + kMostOwned - 1) / kMostOwned;
        width = (step.width + columns - 1) / columns;
        width += (8 - (width + 2 * halo) % 8) % 8;  // whole groups of eight with the halo
        columns = (step.width + width - 1) / width;
        const int wanted = (kJobsPerThread * threads + columns - 1) / columns,
                  most = (step.height + kLeastHeight - 1) / kLeastHeight;
        rows = wanted < most ? wanted : most;
        height = (step.height + rows - 1) / rows;
        height += height % 2;
        rows = (step.height + height - 1) / height;
    }

    Block block(const DenoiseStep& step, int job) const {
        const int x = job % columns * width, y = job / columns * height;
        return {x, x + width < step.width ? x + width : step.width, y,
                y + height < step.height ? y + height : step.height};
    }
};

}  // namespace

void denoise(const DenoiseStep& step, int threads) {
    threads = thread_count(threads);
    const Pyramid pyramid(step, threads);
    const Grid grid(step, threads, kHalo);
    parallel_for(grid.columns * grid.rows, threads, [&](int job) {
        static thread_local Buffer<Sweep> sweep;
        sweep.resize(1);
        sweep[0].run(step, pyramid, grid.block(step, job));
    });
}

}  // namespace hush::HUSH_ISA
