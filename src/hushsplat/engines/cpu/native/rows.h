// How the sweep of denoise.cpp lays out what it carries: a row of a block, one plane of floats per channel.
#pragma once

#include <cstddef>
#include <cstring>

namespace hush::HUSH_ISA {

constexpr int kHalo = 4;         // px: two depthwise layers, the neighbourhoods of smoothing and of stabilisation
constexpr int kMostOwned = 400;  // px: widest block; with its halo 51 groups of eight, and all its rows about 350 kB
constexpr int kTogether = 32;    // px that share each load of a weight
constexpr int kMargin = 8;       // floats before and after a plane; one is read, eight keep it aligned
constexpr int kPlane = kMargin + (kMostOwned + 2 * kHalo + kTogether - 1) / kTogether * kTogether + kMargin;  // floats

// The last few rows of one intermediate; channel c of a row lies at + c · kPlane.
template <int Channels, int Rows>
struct Ring {
    alignas(64) float values[Rows][Channels * kPlane];

    float* row(int y) { return values[(y + 4 * Rows) % Rows] + kMargin; }  // y >= -4 · Rows
    void clear_row(int y) { std::memset(values[(y + 4 * Rows) % Rows], 0, sizeof values[0]); }

    // What lies beside the columns of a row is 0: the depthwise layers' padding at the edges of the picture.
    void clear_sides(int y, int columns) {
        float* plane = row(y);
        for (int c = 0; c < Channels; ++c, plane += kPlane) plane[-1] = plane[columns] = 0;
    }
};

}  // namespace hush::HUSH_ISA
