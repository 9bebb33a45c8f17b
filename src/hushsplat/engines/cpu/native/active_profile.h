// How deep light reaches into each cell, told by the last frame: its transmittance profile, read where a tile was then.
#pragma once

#include <algorithm>
#include <cmath>

#include "active_set.h"
#include "kernels.h"

namespace hush::HUSH_ISA {

// Transmittances whose depths are kept; the last is ActiveSetSettings::stop.
constexpr float kPassed[kProfileLevels] = {0.5f, 0.25f, 0.1f, 0.03f, 0};
constexpr int kWindow = 8;             // cells: a profile spread over more than this is no help
constexpr float kDepthSlack = 1.002f;  // depths move a little between frames, and are rounded

// From a pixel of this frame at 1 / depth to the pixel of the last frame, and from depths there to depths here.
class FrameChange {
public:
    FrameChange(const Camera& now, const Camera& before) : now_(now), before_(before) {
        for (int i = 0; i < 3; ++i) {
            float moved = 0;
            for (int k = 0; k < 3; ++k) moved += before.rotation[3 * i + k] * (now.eye[k] - before.eye[k]);
            shift_[i] = moved;
            for (int j = 0; j < 3; ++j) {
                float sum = 0;
                for (int k = 0; k < 3; ++k) sum += before.rotation[3 * i + k] * now.rotation[3 * j + k];
                turn_[3 * i + j] = sum;
            }
        }
    }

    // False if the place was behind the camera then.
    bool place(float x, float y, float inverse_depth, float out[2]) const {
        const float ray[3] = {(x - now_.cx) / now_.fx, (y - now_.cy) / now_.fy, 1};
        float p[3];
        for (int i = 0; i < 3; ++i)
            p[i] = turn_[3 * i] * ray[0] + turn_[3 * i + 1] * ray[1] + turn_[3 * i + 2] + shift_[i] * inverse_depth;
        if (!(p[2] > 0.05f)) return false;
        out[0] = before_.fx * p[0] / p[2] + before_.cx;
        out[1] = before_.fy * p[1] / p[2] + before_.cy;
        return std::abs(out[0]) < 1e6f && std::abs(out[1]) < 1e6f;
    }

    // A point seen then at pixel (x, y) and some depth has the depth `scale` · depth + `offset` now.
    void depth(float x, float y, float* scale, float* offset) const {
        const float ray[3] = {(x - before_.cx) / before_.fx, (y - before_.cy) / before_.fy, 1};
        *scale = turn_[2] * ray[0] + turn_[5] * ray[1] + turn_[8];
        *offset = -(turn_[2] * shift_[0] + turn_[5] * shift_[1] + turn_[8] * shift_[2]);
    }

private:
    const Camera &now_, &before_;
    float turn_[9];   // last frame's camera from this one's
    float shift_[3];  // this frame's eye as the last frame's camera sees it
};

struct CellWindow {
    int x0, x1, y0, y1;  // cells, inclusive, relative to the cell
    bool inside;         // all of the tile was in the picture
    float parallax;      // px: how far near and far, or one corner and another, moved apart
};

// The depths between which a patch of the last frame's cells used up its light; false outside the picture.
inline bool depth_range(const ActiveSet& before, int x0, int y0, int side, float* least, float* most) {
    const int x_end = std::min(x0 + side, before.cell_columns), y_end = std::min(y0 + side, before.cell_rows);
    *least = kUnknown, *most = 0;
    const float *near = before.plane(0), *far = before.plane(kProfileLevels - 1);
    for (int y = std::max(y0, 0); y < y_end; ++y)
        for (int x = std::max(x0, 0); x < x_end; ++x) {
            const size_t at = (size_t)y * before.cell_columns + x;
            *least = std::min(*least, near[at]);
            *most = std::max(*most, far[at]);
        }
    return *most > 0;
}

// Where the tile's cells lay in the last frame, whatever the depth of what they show; false if that is too wide.
inline bool window_of(const ActiveSet& before, const FrameChange& change, int x0, int y0, float reach,
                      CellWindow* window) {
    const float half = 0.5f * kSetTile;
    float at[2];
    if (!change.place(x0 + half, y0 + half, 0, at)) return false;
    float least, most;
    const int margin = kSetCells / 2;
    if (!depth_range(before, (int)std::floor((at[0] - half) / kSetCell) - margin,
                     (int)std::floor((at[1] - half) / kSetCell) - margin, kSetCells + 2 * margin, &least, &most))
        return false;
    float low[2] = {1e9f, 1e9f}, high[2] = {-1e9f, -1e9f};
    for (int corner = 0; corner < 8; ++corner) {
        const float from[2] = {(float)(x0 + (corner & 1) * kSetTile), (float)(y0 + (corner >> 1 & 1) * kSetTile)};
        if (!change.place(from[0], from[1], 1 / (corner & 4 ? most : least), at)) return false;
        for (int axis = 0; axis < 2; ++axis) {
            low[axis] = std::min(low[axis], at[axis] - from[axis]);
            high[axis] = std::max(high[axis], at[axis] - from[axis]);
        }
    }
    auto first = [&](float v) { return (int)std::floor((v - reach) / kSetCell); };
    auto last = [&](float v) { return (int)std::floor((v + reach + kSetCell - 1) / kSetCell); };
    *window = {first(low[0]), last(high[0]), first(low[1]), last(high[1])};
    window->parallax = std::max(high[0] - low[0], high[1] - low[1]);
    const float slack = 1;  // px: what enters the picture so slowly is found when the tile has its turn
    window->inside = x0 + low[0] >= -slack && y0 + low[1] >= -slack &&
                     std::min(x0 + kSetTile, before.camera.width) + high[0] <= before.camera.width + slack &&
                     std::min(y0 + kSetTile, before.camera.height) + high[1] <= before.camera.height + slack;
    return window->x1 - window->x0 <= kWindow && window->y1 - window->y0 <= kWindow;
}

// One level of the tile's profile: the farthest depth in each cell's window, nothing known outside the picture.
inline void farthest_in_window(const ActiveSet& before, int level, int cell_x, int cell_y, const CellWindow& w,
                               float out[kCellsInTile]) {
    constexpr int kPitch = kSetCells + kWindow;
    float patch[kPitch][kPitch + 8];  // the last eight are only there for whole vectors
    const int rows = kSetCells + w.y1 - w.y0, columns = kSetCells + w.x1 - w.x0;
    const float* plane = before.plane(level);
    for (int y = 0; y < rows; ++y) {
        const int v = cell_y + w.y0 + y, u = cell_x + w.x0;
        if (v >= 0 && v < before.cell_rows && u >= 0 && u + columns <= before.cell_columns) {
            std::memcpy(patch[y], plane + (size_t)v * before.cell_columns + u, columns * sizeof(float));
            continue;
        }
        for (int x = 0; x < columns; ++x) {
            const bool inside = v >= 0 && v < before.cell_rows && u + x >= 0 && u + x < before.cell_columns;
            patch[y][x] = inside ? plane[(size_t)v * before.cell_columns + u + x] : kUnknown;
        }
    }
    f32x8 across[kPitch];
    for (int y = 0; y < rows; ++y) {
        across[y] = load(patch[y]);
        for (int x = 1; x <= w.x1 - w.x0; ++x) across[y] = max(across[y], load(patch[y] + x));
    }
    for (int y = 0; y < kSetCells; ++y) {
        f32x8 most = across[y];
        for (int k = 1; k <= w.y1 - w.y0; ++k) most = max(most, across[y + k]);
        store(out + y * kSetCells, most);
    }
}

// The profile that holds for a tile of this frame, and the depth behind which the whole tile is finished.
struct TileProfile {
    alignas(32) float passed[kProfileLevels][kCellsInTile];
    bool known;      // the last frame showed all of this tile
    float parallax;  // px, see CellWindow

    float read(const ActiveSet* before, const FrameChange* change, const Camera& camera, int x0, int y0, float reach) {
        CellWindow window;
        if (!before || !window_of(*before, *change, x0, y0, reach, &window)) {
            for (auto& level : passed) std::fill(level, level + kCellsInTile, kUnknown);
            known = false, parallax = 0;
            return kUnknown;
        }
        known = window.inside, parallax = window.parallax;
        const f32x8 columns = splat((float)x0) + iota() * splat(kSetCell);
        const i32x8 right = columns < splat((float)camera.width);
        float scale, offset;
        change->depth(x0 + 0.5f * kSetTile + 0.5f * kSetCell * (window.x0 + window.x1),
                      y0 + 0.5f * kSetTile + 0.5f * kSetCell * (window.y0 + window.y1), &scale, &offset);
        f32x8 most = splat(0);
        for (int level = 0; level < kProfileLevels; ++level) {
            farthest_in_window(*before, level, x0 / kSetCell, y0 / kSetCell, window, passed[level]);
            for (int c = 0; c < kCellsInTile; c += 8) {
                const f32x8 then = load(passed[level] + c);
                const f32x8 here = (splat(scale) * then + splat(offset)) * splat(kDepthSlack);
                f32x8 known = select(then < splat(kUnknown), here, splat(kUnknown));
                const bool above = y0 + c / kSetCells * kSetCell < camera.height;
                known = select(above ? right : splat_int(0), known, splat(0));  // nothing is drawn outside the picture
                store(passed[level] + c, known);
                if (level == kProfileLevels - 1) most = max(most, known);
            }
        }
        return -horizontal_min(-most);
    }

    // log2 of the least alpha that matters in each cell at this depth.
    HUSH_MEMBER void needed(float depth, float log2_prune, float least, const float steps[kProfileLevels],
                            float need[kCellsInTile]) const {
        for (int c = 0; c < kCellsInTile; c += 8) {
            f32x8 sum = splat(log2_prune);
            for (int level = 0; level < kProfileLevels; ++level)
                sum += select(splat(depth) > load(passed[level] + c), splat(steps[level]), splat(0));
            store(need + c, max(sum, splat(least)));
        }
    }
};

}  // namespace hush::HUSH_ISA
