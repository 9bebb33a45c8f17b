// What the passes of the CPU engine share: the prepared scene, the frame, and the table of kernels per instruction set.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

#include "threads.h"

namespace hush {

struct DenoiseStep;   // denoise.h
struct BaselineStep;  // baselines.h
struct SvgfSettings;
struct ActiveJob;  // active_set.h
struct MemberJob;
struct RandomLevels;

constexpr int kChunk = 128;  // Gaussians per chunk: neighbours in space, projected together
constexpr int kTile = 64;    // px: side of the square that one job draws; its buffers stay in cache
constexpr int kCell = 8;     // px: side of the squares whose farthest depth is tracked inside a tile
constexpr int kCells = kTile / kCell;
constexpr int kTable = 4096;                // entries of the table of random levels, see spec/sampling.py
constexpr int kRowStep = 1087;              // table entries between a pixel and the one below it
constexpr float kMaxLevel = 11.082527082f;  // 2 ln 255: a fragment's alpha counts from 1/255 on
constexpr float kDilation = 0.3f;           // px²: what 3DGS adds to a projected covariance
constexpr float kNearer = 1.00001f;         // slack of bounds on 1 / depth, so that rounding hides nothing
constexpr float kOpaque = 1e-4f;            // transmittance below which sorted blending stops
constexpr int kGeometry = 6;  // what else can be blended like a colour: depth, 1 / depth, its square, normal (xyz)

// Memory on a cache line's boundary, left uninitialised.
template <class T>
class Buffer {
public:
    Buffer() = default;
    explicit Buffer(size_t n) { resize(n); }
    void resize(size_t n) {
        if (n <= size_) return;
        data_.reset(static_cast<T*>(::operator new(n * sizeof(T), std::align_val_t(64))));
        size_ = n;
    }
    __attribute__((always_inline)) T* get() const { return data_.get(); }
    __attribute__((always_inline)) T& operator[](size_t k) const { return data_.get()[k]; }
    size_t bytes() const { return size_ * sizeof(T); }

private:
    struct Free {
        void operator()(T* p) const { ::operator delete(p, std::align_val_t(64)); }
    };
    std::unique_ptr<T, Free> data_;
    size_t size_ = 0;
};

struct Camera {
    float rotation[9];  // camera from world, row-major
    float eye[3];       // world
    float fx, fy, cx, cy;
    int width, height;
    float near;
};

// What never changes with the camera, per Gaussian in chunks of kChunk: kFixed rows of kChunk floats.
enum FixedRow {
    kMeanX,
    kMeanY,
    kMeanZ,
    kShape,                    // six rows: surfels: scaled axes a, b; ellipsoids: covariance xx xy xz yy yz zz
    kLogOpacity = kShape + 6,  // 2 ln(opacity); -inf marks an empty slot
    kFixed
};

// What a frame's camera makes of each Gaussian. With d the pixel's offset from the projected centre, t = 1 + g·d:
//   S = t² + h(d, d) (h = 0 for surfels), Q = (ux dx + uy dy)² + (vy dy)², squared distance D² = Q / S,
//   1 / depth = inverse_depth · S / t.
struct Projected {
    float center_x, center_y;                 // px
    float ux, uy, vy, gx, gy, hxx, hxy, hyy;  // per px
    float inverse_depth;                      // of the centre
    float log_opacity;                        // 2 ln(opacity)
};

enum Flag : uint8_t {
    kLowPass = 1,  // the screen-space low-pass may decide somewhere in the footprint (surfels)
    kClipped = 2,  // the footprint may reach before the near plane, or far towards the eye
};

struct Bounds {
    float low[3], high[3];
};

// What a projected chunk can touch at all.
struct ChunkReach {
    int16_t x0, x1, y0, y1;
    float nearest;
};

// Throws if any of the values is NaN or infinite; `name` is what the message calls them.
void require_finite(const float* values, size_t count, const char* name, int threads);

struct Scene {
    // Gaussians that can never be seen are left out, unless `all` are wanted because `refresh` may make them visible.
    // With `group` (a number from 0 on for each) no chunk has Gaussians of two groups, and frames may leave groups out.
    Scene(const float* means, const float* scales, const float* rotations, const float* opacities, int count,
          bool surfels, int threads, bool all = false, const int32_t* group = nullptr);

    const uint64_t serial;  // no two scenes of a process have the same
    int count;              // Gaussians in the file
    int chunks;             // chunks of those that can be seen at all
    bool surfels;
    bool antialiased = false;  // trained with Mip-Splatting's screen-space filter: opacities fall by what it enlarges
    // New values for the same Gaussians: where each is kept stays as it was, which is right as long as they hardly
    // move.
    void refresh(const float* means, const float* scales, const float* rotations, const float* opacities, int threads);

    Buffer<float> fixed;               // [chunk][kFixed][kChunk]
    Buffer<int32_t> id;                // [chunk][kChunk], index in the file, -1 for an empty slot
    std::vector<int32_t> chunk_group;  // [chunk], empty without groups
    int groups = 0;
    std::vector<Bounds> bounds;  // of each chunk's footprints at level 1/255, world

    // One frame's projection, filled chunk by chunk when a tile first needs it.
    Buffer<Projected> projected;                    // [chunk][kChunk]
    Buffer<int16_t> box;                            // [chunk][x0 x1 y0 y1][kChunk], px, exclusive ends
    Buffer<float> nearest;                          // [chunk][kChunk], largest 1 / depth in the footprint
    Buffer<ChunkReach> reach;                       // [chunk]
    Buffer<uint8_t> flags;                          // [chunk][kChunk]
    Buffer<uint8_t> won;                            // [chunk]: bit 0 in the last noisy frame, bit 1 in this one
    std::unique_ptr<std::atomic<uint8_t>[]> state;  // 0 not projected, 1 in work, 2 done, 3 in work and waited for
    FrameLock frame_mutex;                          // one frame at a time

    size_t bytes() const;
};

// Where a chunk can be in the picture, px, exclusive ends.
struct ChunkBox {
    int x0, x1, y0, y1;
};

// Which chunks each tile has to look at, front to back.
struct TileLists {
    int columns, rows;
    std::vector<size_t> begin;        // [tiles + 1] into `chunk`
    std::vector<int> chunk;           // chunk indices
    std::vector<float> inverse_near;  // [chunk]: 1 / (least depth at which the chunk can be hit)
    std::vector<ChunkBox> box;        // [chunk]: px, of those that are in the picture
};

// `shown` says which groups are drawn; null: all.
void begin_frame(Scene& scene, const Camera& camera, TileLists& lists, const uint8_t* shown = nullptr);

// Returns when another thread has projected the chunk that it has in work.
void await_projected(std::atomic<uint8_t>& state);

struct Colors {
    const float* sh;     // [n][k][3]
    int coefficients;    // k
    const float* means;  // [n][3]
    int count;           // n
};

// What per-pixel order has seen: fragments in each pixel's order, patch by patch (see pixel_order.h).
struct FragmentRecord {
    int32_t entry;  // index into `slots`
    int32_t pixel;  // of the patch
    float alpha, inverse_depth;
};
struct PatchFragments {
    std::vector<int32_t> slots;  // chunk · kChunk + slot
    std::vector<FragmentRecord> records;
};
struct FragmentTape {
    std::vector<PatchFragments> patches;
    uint64_t scene = 0;         // serial of the scene whose slots these are; 0: nothing is recorded
    int width = 0, height = 0;  // px, of the picture
};

// By which depth a pixel's fragments are in front of each other: their own, or that of their Gaussians' centres.
enum class Order { pixel, center };

struct SortedOutput {
    float* color;     // [h][w][3]
    float* alpha;     // [h][w]
    float* depth;     // [h][w] or null
    float* variance;  // [h][w][3] or null (per-pixel order only)
    float background[3];
    FragmentTape* tape = nullptr;  // what the gradient of per-pixel order needs, or null
    float* geometry = nullptr;     // [h][w][kGeometry], sums of weight · value, or null; normals are of surfels
    float stop = 1e-8f;  // transmittance behind which per-pixel order takes nothing more: it cannot be told from none
    const MemberJob* set = nullptr;  // of per-pixel order: draws these Gaussians alone
};

// Derivatives of a loss by what a raster has drawn, in and what they are by the Gaussians, out.
struct GradientJob {
    const float* color;        // [h][w][3], as drawn
    const float* alpha;        // [h][w], as drawn
    const float* by_color;     // [h][w][3]
    const float* by_alpha;     // [h][w]
    const float* geometry;     // [h][w][kGeometry] as drawn, or null
    const float* by_geometry;  // [h][w][kGeometry], or null
    const float* scales;       // [n][2]
    const float* rotations;    // [n][4]
    const float* opacities;    // [n]
    float* by_means;           // [n][3], these are added to
    float* by_scales;          // [n][2]
    float* by_rotations;       // [n][4], of unit quaternions
    float* by_opacities;       // [n]
    float* by_sh;              // [n][k][3]
    float* by_center;          // [n][2], per px: moving the footprint in the picture; for densification
    uint8_t* seen;             // [n]: 1 if any of its fragments took part
};

struct AdamStep {
    int rows, columns;
    int trained;            // the first columns, those that have a gradient
    float* values;          // [rows][columns]
    const float* gradient;  // [rows][trained]
    float *first, *second;  // moments, [rows][columns]
    const float* sizes;     // [trained]
    float beta1, beta2, second_scale, epsilon;
};

// The passes, compiled once per instruction set.
struct Kernels {
    const char* name;
    void (*project)(Scene&, const Camera&, int chunk);
    // `levels` is [kTable] and `sequence` the hashed seed of the primitive keys, one of each per sample.
    void (*stochastic)(Scene&, const Camera&, const TileLists&, const float* levels, const uint32_t* sequence,
                       int samples, Order, int threads, int32_t* id, float* depth);
    void (*sorted)(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const SortedOutput&);
    void (*exact)(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const SortedOutput&);
    void (*sorted_gradient)(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const GradientJob&);
    void (*exact_gradient)(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const FragmentTape&,
                           const GradientJob&);
    double (*ssim)(const float* first, const float* second, int width, int height, int threads, float* by_first);
    void (*adam)(const AdamStep&, int threads);
    void (*decode)(const int32_t* id, int samples, int width, int height, const Camera&, const Colors&, int threads,
                   const float* background, float* color);
    void (*decode_view)(const int32_t* id, const float* depth, int samples, int width, int height, const float* payload,
                        int count, const float* axes, int threads, float* view);
    double (*peak_flops)(int threads);  // per second
    double (*peak_bytes)(int threads);
    void (*denoise)(const DenoiseStep& step, int threads);
    void (*baseline_mean)(const BaselineStep& step, int frames);
    void (*baseline_st_taa)(const BaselineStep& step, float cap, float reach);
    void (*baseline_taa)(const BaselineStep& step, float cap, float gamma);
    void (*baseline_svgf)(const BaselineStep& step, const SvgfSettings& settings);
    void (*active_set)(Scene&, const Camera&, const TileLists&, const Colors&, int threads, const ActiveJob&);
};

const Kernels& kernels();               // the best this machine can run, unless chosen otherwise
bool choose_kernels(const char* name);  // "avx2", "portable"; false if this machine or build has it not
std::vector<const char*> available_kernels();

}  // namespace hush
