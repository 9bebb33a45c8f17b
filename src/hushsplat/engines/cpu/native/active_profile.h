// How deep light reaches into each cell, told by the last frame: its transmittance profile, read where a tile was then.
#pragma once

#include <algorithm>
#include <cmath>

#include "active_set.h"
#include "kernels.h"

namespace hush::HUSH_ISA {

constexpr float kHalf = 0.5f;          // transmittance whose depth is kept beside that of ActiveSetSettings::stop
constexpr int kWindow = 8;             // cells: a profile spread over more than this is no help
constexpr float kEntered = 4;          // px of parallax that count for one px that what is seen comes into the picture
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
    float parallax;  // px: how far near and far, or one corner and another, moved apart, or what came in at a border
};

// The depths between which a patch of the last frame's cells used up its light; false outside the picture.
inline bool depth_range(const ActiveSet& before, int x0, int y0, int side, float* least, float* most) {
    const int x_end = std::min(x0 + side, before.cell_columns), y_end = std::min(y0 + side, before.cell_rows);
    *least = kUnknown, *most = 0;
    const float *near = before.plane(0), *far = before.plane(kProfileLevels - 1);
    for (int y = std::max(y0, 0); y < y_end; ++y)
        for (int x = std::max(x0, 0); x < x_end; ++x) {
            const size_t at = (size_t)y * before.cell_columns + x;
            if (!(far[at] > 0)) continue;  // outside the picture
            *least = std::min(*least, near[at]);
            *most = std::max(*most, far[at]);
        }
    return *most > 0;
}

// How far corners of a tile move, last frame's place less this frame's, over all depths asked for.
struct Moved {
    float low[2] = {1e9f, 1e9f}, high[2] = {-1e9f, -1e9f};

    bool add(const FrameChange& change, int x0, int y0, float inverse_depth) {
        float at[2];
        for (int corner = 0; corner < 4; ++corner) {
            const float from[2] = {(float)(x0 + (corner & 1) * kSetTile), (float)(y0 + (corner >> 1) * kSetTile)};
            if (!change.place(from[0], from[1], inverse_depth, at)) return false;
            for (int axis = 0; axis < 2; ++axis) {
                low[axis] = std::min(low[axis], at[axis] - from[axis]);
                high[axis] = std::max(high[axis], at[axis] - from[axis]);
            }
        }
        return true;
    }

    // px of the tile that lay outside the picture.
    float entered(const Camera& then, int x0, int y0) const {
        const float right = (float)std::min(x0 + kSetTile - then.width, 0) + high[0];
        const float bottom = (float)std::min(y0 + kSetTile - then.height, 0) + high[1];
        return std::max({-(float)x0 - low[0], -(float)y0 - low[1], right, bottom, 0.0f});
    }
};

// Where the tile's cells lay in the last frame, whatever the depth of what they show; false if that is too wide.
inline bool window_of(const ActiveSet& before, const FrameChange& change, int x0, int y0, float reach, float nearest,
                      CellWindow* window) {
    const float half = 0.5f * kSetTile;
    float at[2];
    if (!change.place(x0 + half, y0 + half, 0, at)) return false;
    float least, most;
    const int margin = kSetCells / 2;
    if (!depth_range(before, (int)std::floor((at[0] - half) / kSetCell) - margin,
                     (int)std::floor((at[1] - half) / kSetCell) - margin, kSetCells + 2 * margin, &least, &most))
        return false;
    Moved moved, near;
    if (!moved.add(change, x0, y0, 1 / least) || !moved.add(change, x0, y0, 1 / most)) return false;
    const float *low = moved.low, *high = moved.high;
    auto first = [&](float v) { return (int)std::floor((v - reach) / kSetCell); };
    auto last = [&](float v) { return (int)std::floor((v + reach + kSetCell - 1) / kSetCell); };
    const float slack = 1;  // px: a tile is not searched for less at once
    const float entered = moved.entered(before.camera, x0, y0);
    float parallax = std::max({high[0] - low[0], high[1] - low[1], kEntered * entered});
    // What is not yet seen may be as near as anything that is, and faster than what is seen here.
    if (near.add(change, x0, y0, 1 / nearest)) parallax = std::max(parallax, near.entered(before.camera, x0, y0));
    *window = {first(low[0]), last(high[0]), first(low[1]), last(high[1]), entered <= slack, parallax};
    return window->x1 - window->x0 <= kWindow && window->y1 - window->y0 <= kWindow;
}

// Boxes of pixels, exclusive ends.
struct PixelBox {
    int16_t x0, x1, y0, y1;
};

constexpr int kBlock = 8;  // px: side of the squares of a tile for which it is known how deep light reached
constexpr int kBlocks = kSetTile / kBlock;

// What the last frame says of a tile of this frame.
struct TileProfile {
    float finished;                             // depth behind which nothing is seen
    bool known;                                 // the last frame showed all of this tile
    float parallax;                             // px, see CellWindow
    alignas(32) float block[kBlocks][kBlocks];  // depths behind which nothing is seen in each block

    void read(const ActiveSet* before, const FrameChange& change, int x0, int y0, float reach, float nearest) {
        CellWindow window;
        const bool found = before && window_of(*before, change, x0, y0, reach, nearest, &window);
        known = found && window.inside, parallax = found ? window.parallax : 0;
        finished = kUnknown;
        std::fill_n(block[0], kBlocks * kBlocks, kUnknown);
        if (!known) return;
        float scale, offset;
        change.depth(x0 + 0.5f * kSetTile + 0.5f * kSetCell * (window.x0 + window.x1),
                     y0 + 0.5f * kSetTile + 0.5f * kSetCell * (window.y0 + window.y1), &scale, &offset);
        finished = 0;
        constexpr int kCellsInBlock = kBlock / kSetCell;
        for (int y = 0; y < kBlocks; ++y)
            for (int x = 0; x < kBlocks; ++x) {
                const int column = x0 / kSetCell + x * kCellsInBlock, row = y0 / kSetCell + y * kCellsInBlock;
                const float then = farthest(*before, column + window.x0, column + kCellsInBlock + window.x1,
                                            row + window.y0, row + kCellsInBlock + window.y1);
                block[y][x] = then < kUnknown ? (scale * then + offset) * kDepthSlack : kUnknown;
                finished = std::max(finished, block[y][x]);
            }
    }

    // Whether anything at this depth is seen in the part of the box that lies in this tile at (x0, y0), as far as is
    // known.
    HUSH_MEMBER bool shows(const PixelBox& box, int x0, int y0, float depth) const {
        if (depth > finished) return false;
        const int left = std::max((box.x0 - x0) / kBlock, 0), right = std::min((box.x1 - 1 - x0) / kBlock, kBlocks - 1);
        const int top = std::max((box.y0 - y0) / kBlock, 0), low = std::min((box.y1 - 1 - y0) / kBlock, kBlocks - 1);
        const unsigned columns = (0xfu << left & 0xfu >> (kBlocks - 1 - right)) * 0x1111u;
        const unsigned rows = 0xffffu << (kBlocks * top) & 0xffffu >> (kBlocks * (kBlocks - 1 - low));
        const f32x8 here = splat(depth);
        return ((bits(load(block[0]) >= here) | bits(load(block[2]) >= here) << 8) & columns & rows) != 0;
    }

private:
    // The farthest depth at which the last frame's light ended in these cells; outside its picture it is 0.
    static float farthest(const ActiveSet& before, int left, int right, int top, int bottom) {
        const float* plane = before.plane(kProfileLevels - 1);
        float most = 0;
        for (int y = std::max(top, 0); y < std::min(bottom, before.cell_rows); ++y)
            for (int x = std::max(left, 0); x < std::min(right, before.cell_columns); ++x)
                most = std::max(most, plane[(size_t)y * before.cell_columns + x]);
        return most;
    }
};
static_assert(kBlocks == 4, "two rows of blocks are a vector");

}  // namespace hush::HUSH_ISA
