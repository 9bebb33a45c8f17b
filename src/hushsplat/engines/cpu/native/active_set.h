// The active set: which Gaussians were seen and still matter, and how deep the last frame's light reached.
#pragma once

#include <memory>
#include <vector>

#include "engine.h"
#include "recycle.h"
#include "spec.h"

namespace hush {

constexpr int kSetTile = 32;  // px: side of the square whose members are ordered together
constexpr int kSetCell = 4;   // px: side of the squares for which it is decided who matters
constexpr int kSetCells = kSetTile / kSetCell;
constexpr int kCellsInTile = kSetCells * kSetCells;
constexpr int kProfileLevels = 2;  // half of the light, and all that counts
constexpr float kUnknown = 1e30f;  // depth of a profile that says nothing: no light is known to have been used up

// An array in recycled memory; left uninitialised.
template <class T>
class Recycling {
public:
    explicit Recycling(size_t n) : size_(n), memory_(new Recycled(rounded(n * sizeof(T)))) {}
    __attribute__((always_inline)) T* get() const { return static_cast<T*>(memory_->get()); }
    __attribute__((always_inline)) T& operator[](size_t k) const { return get()[k]; }
    size_t size() const { return size_; }

private:
    // Sizes change a little each frame, blocks should not: up to a quarter more, of which nothing is touched.
    static size_t rounded(size_t bytes) {
        size_t step = 1 << 18;
        while (4 * step < bytes) step *= 2;
        return (bytes / step + 1) * step;
    }

    size_t size_;
    std::unique_ptr<Recycled> memory_;
};

struct ActiveCounts {
    int64_t members = 0;   // drawn this frame
    int64_t fresh = 0;     // of them, those that were not in the set before
    int64_t entries = 0;   // pairs of member and tile
    int64_t pairs = 0;     // pairs of member and cell
    int64_t rays = 0;      // members drawn by the ray form
    int64_t searched = 0;  // tiles of kTile px that were searched, each sample counted
};

enum ActiveStage { kReadProfiles, kFindMembers, kMakeMembers, kBin, kDraw, kKeep, kActiveStages };

// Colours of the members, and whence each chunk's were seen.
struct KeptColors {
    KeptColors(const Scene& scene, const Colors& from, size_t members)
        : rgb(3 * members), first(scene.chunks), eye((size_t)3 * scene.chunks), scene_(scene.serial), sh_(from.sh) {}
    // Another scene may have as many chunks, and the same one other harmonics.
    bool are_of(const Scene& scene, const Colors& from) const { return scene_ == scene.serial && sh_ == from.sh; }
    size_t bytes() const { return 4 * (rgb.size() + first.size() + eye.size()); }

    Recycling<float> rgb;       // [member][3], in the order of the slots
    Recycling<uint32_t> first;  // [chunk]: of its members
    Recycling<float> eye;       // [chunk][3], world

private:
    uint64_t scene_;
    const float* sh_;
};

// What goes from frame to frame. A step makes a new one and leaves the previous as it was.
struct ActiveSet {
    ActiveSet(int chunks, const Camera& from)
        : members((size_t)2 * chunks),
          camera(from),
          cell_columns((from.width + kSetTile - 1) / kSetTile * kSetCells),
          cell_rows((from.height + kSetTile - 1) / kSetTile * kSetCells),
          profile((size_t)kProfileLevels * cell_columns * cell_rows),
          parallax((size_t)((from.width + kTile - 1) / kTile) * ((from.height + kTile - 1) / kTile), 0) {}
    size_t words() const { return members.size(); }
    float* plane(int level) const { return profile.get() + (size_t)level * cell_columns * cell_rows; }
    size_t bytes() const {
        return members.size() * 8 + profile.size() * 4 + parallax.size() * 4 + (colors ? colors->bytes() : 0);
    }

    Recycling<uint64_t> members;  // one bit per slot of the scene, two words per chunk
    Camera camera;                // of the profile
    int cell_columns, cell_rows;  // whole tiles
    Recycling<float> profile;     // [level][cell row][cell column]: depth at which transmittance fell below the level
    std::vector<float> parallax;  // [tile of kTile px]: px, since it was searched
    std::unique_ptr<KeptColors> colors;  // null: none are kept
    uint32_t frame = 0;                  // frames since the set was empty
    ActiveCounts counts;
    float stage_ms[kActiveStages] = {};
};

struct RandomLevels {
    const float* levels;       // [samples][kTable]
    const uint32_t* sequence;  // [samples]
    int samples;               // tables that there are
};

// Members that are drawn in the order of each pixel.
struct MemberJob {
    const uint64_t* members;  // projected already
    uint64_t* kept;           // who had the weight `prune` somewhere; bits are added
    const float* finished;    // [tile of kSetTile px]: depth behind which the last frame saw nothing
    int columns;              // of those tiles
    float prune, stop;
    ActiveSet* next;  // takes the profile
};

struct ActiveJob {
    ActiveSetSettings settings;
    RandomLevels random;  // of `stream`
    Order order;
    const ActiveSet* previous;  // or null; made for this scene
    ActiveSet* next;
    SortedOutput out;
};

}  // namespace hush
