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
constexpr float kUncovered = 0.5f;     // px that surfaces move apart before one is searched for what it hid (ours)
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
    float came_in;   // px of parallax that what came in at a border stands for
    float apart;     // px by which places moved apart whose 1 / depth differs by 1
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
    const float spread = std::max(high[0] - low[0], high[1] - low[1]);
    // What is not yet seen may be as near as anything that is, and faster than what is seen here.
    const float came_in = std::max(kEntered * entered,
                                   near.add(change, x0, y0, 1 / nearest) ? near.entered(before.camera, x0, y0) : 0.0f);
    const float depths = 1 / least - 1 / most;
    *window = {first(low[0]),    last(high[0]),
               first(low[1]),    last(high[1]),
               entered <= slack, std::max(spread, came_in),
               came_in,          depths > 0 ? spread / depths : 0};
    return window->x1 - window->x0 <= kWindow && window->y1 - window->y0 <= kWindow;
}

// Boxes of pixels, exclusive ends.
struct PixelBox {
    int16_t x0, x1, y0, y1;
};

constexpr int kBlock = 8;  // px: side of the squares of a tile for which it is known how deep light reached
constexpr int kBlocks = kSetTile / kBlock;

// Depths behind which nothing is looked for in a tile.
struct TileDepths {
    float most;                                 // of all blocks
    alignas(32) float block[kBlocks][kBlocks];  // of each block

    void fill(float depth) { std::fill_n(block[0], kBlocks * kBlocks, most = depth); }
    float least() const { return *std::min_element(block[0], block[0] + kBlocks * kBlocks); }

    // Whether this depth is reached in the part of the box that lies in this tile at (x0, y0).
    HUSH_MEMBER bool reach(const PixelBox& box, int x0, int y0, float depth) const {
        if (depth > most) return false;
        const int left = std::max((box.x0 - x0) / kBlock, 0), right = std::min((box.x1 - 1 - x0) / kBlock, kBlocks - 1);
        const int top = std::max((box.y0 - y0) / kBlock, 0), low = std::min((box.y1 - 1 - y0) / kBlock, kBlocks - 1);
        const unsigned columns = (0xfu << left & 0xfu >> (kBlocks - 1 - right)) * 0x1111u;
        const unsigned rows = 0xffffu << (kBlocks * top) & 0xffffu >> (kBlocks * (kBlocks - 1 - low));
        const f32x8 here = splat(depth);
        return ((bits(load(block[0]) >= here) | bits(load(block[2]) >= here) << 8) & columns & rows) != 0;
    }
};
static_assert(kBlocks == 4, "two rows of blocks are a vector");

// What the last frame says of a tile of this frame.
struct TileProfile {
    TileDepths seen;    // nothing behind these is seen, as far as is known
    TileDepths sought;  // as far as new members are looked for, if the tile is searched
    bool known;         // the last frame showed all of this tile
    CellWindow window;  // if it did

    void read(const ActiveSet* before, const FrameChange& change, int x0, int y0, float reach, float nearest) {
        window = {};
        known = before && window_of(*before, change, x0, y0, reach, nearest, &window) && window.inside;
        if (known)
            read_blocks(*before, change, x0, y0);
        else
            seen.fill(kUnknown);
        sought = seen;
    }

    // Leaves those blocks to be searched where something may have come from behind: between the surfaces that they and
    // their neighbourhood showed, in so many frames like this one. After a jump it may come from farther: all are.
    void seek_uncovered(const ActiveSet& before, int x0, int y0, float frames) {
        if (!known || window.parallax > kBlock || window.came_in * frames >= kUncovered) return;
        sought.most = 0;
        for (int y = 0; y < kBlocks; ++y)
            for (int x = 0; x < kBlocks; ++x) {
                const Range half = half_depths(before, block_at(x0, y0, x, y));
                if (!(window.apart * (1 / half.least - 1 / half.most) * frames >= kUncovered)) sought.block[y][x] = 0;
                sought.most = std::max(sought.most, sought.block[y][x]);
            }
    }

private:
    // Cells of the last frame, exclusive ends.
    struct CellBox {
        int x0, x1, y0, y1;
    };
    struct Range {
        float least, most;
    };
    static constexpr int kCellsInBlock = kBlock / kSetCell;

    // Where a block of the tile at (x0, y0) was.
    CellBox block_at(int x0, int y0, int x, int y) const {
        const int column = x0 / kSetCell + x * kCellsInBlock, row = y0 / kSetCell + y * kCellsInBlock;
        return {column + window.x0, column + kCellsInBlock + window.x1, row + window.y0,
                row + kCellsInBlock + window.y1};
    }

    void read_blocks(const ActiveSet& before, const FrameChange& change, int x0, int y0) {
        float scale, offset;
        change.depth(x0 + 0.5f * kSetTile + 0.5f * kSetCell * (window.x0 + window.x1),
                     y0 + 0.5f * kSetTile + 0.5f * kSetCell * (window.y0 + window.y1), &scale, &offset);
        seen.most = 0;
        for (int y = 0; y < kBlocks; ++y)
            for (int x = 0; x < kBlocks; ++x) {
                const float then = farthest(before, block_at(x0, y0, x, y));
                seen.block[y][x] = then < kUnknown ? (scale * then + offset) * kDepthSlack : kUnknown;
                seen.most = std::max(seen.most, seen.block[y][x]);
            }
    }

    template <class Visit>
    static void each_depth(const ActiveSet& before, const CellBox& box, int level, Visit&& visit) {
        const float* plane = before.plane(level);
        for (int y = std::max(box.y0, 0); y < std::min(box.y1, before.cell_rows); ++y)
            for (int x = std::max(box.x0, 0); x < std::min(box.x1, before.cell_columns); ++x)
                visit(plane[(size_t)y * before.cell_columns + x]);
    }

    // Depths at which half of the light had ended.
    static Range half_depths(const ActiveSet& before, const CellBox& box) {
        Range found = {kUnknown, 0};
        each_depth(before, box, 0, [&](float depth) {
            if (!(depth > 0)) return;  // outside the picture
            found.least = std::min(found.least, depth);
            found.most = std::max(found.most, depth);
        });
        return found;
    }

    // The farthest depth at which light ended; outside the picture it is 0.
    static float farthest(const ActiveSet& before, const CellBox& box) {
        float most = 0;
        each_depth(before, box, kProfileLevels - 1, [&](float depth) { most = std::max(most, depth); });
        return most;
    }
};

}  // namespace hush::HUSH_ISA
