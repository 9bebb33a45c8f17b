// Prepares a scene once: drops what can never be seen, orders the rest along a space-filling curve, cuts it into
// chunks.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>

#include "engine.h"

namespace hush {
namespace {

uint64_t spread_bits(uint64_t v) {  // 20 bits to every third bit
    v &= 0xfffff;
    v = (v | v << 32) & 0x001f00000000ffffull;
    v = (v | v << 16) & 0x001f0000ff0000ffull;
    v = (v | v << 8) & 0x100f00f00f00f00full;
    v = (v | v << 4) & 0x10c30c30c30c30c3ull;
    v = (v | v << 2) & 0x1249249249249249ull;
    return v;
}

// Half the size of a cell that would hold about one chunk if the scene were spread evenly over its middle.
struct Extent {
    float low[3], high[3];
};

Extent central_extent(const float* means, const std::vector<int32_t>& index) {
    Extent e;
    std::vector<float> values(index.size());
    for (int axis = 0; axis < 3; ++axis) {
        for (size_t k = 0; k < index.size(); ++k) values[k] = means[3 * (size_t)index[k] + axis];
        size_t margin = values.size() / 50;  // a few far-away Gaussians must not coarsen the grid for all others
        std::nth_element(values.begin(), values.begin() + margin, values.end());
        e.low[axis] = values[margin];
        std::nth_element(values.begin(), values.end() - 1 - margin, values.end());
        e.high[axis] = values[values.size() - 1 - margin];
    }
    return e;
}

// NaN becomes 0.
float clamped(float v, float most) { return v > 0 ? std::min(v, most) : 0; }

uint64_t next_serial() {
    static std::atomic<uint64_t> last{0};
    return ++last;
}

struct Keyed {
    uint64_t key;
    int32_t index, group;
};

void rotation_matrix(const float* q, float r[9]) {
    float w = q[0], x = q[1], y = q[2], z = q[3];
    r[0] = 1 - 2 * (y * y + z * z);
    r[1] = 2 * (x * y - w * z);
    r[2] = 2 * (x * z + w * y);
    r[3] = 2 * (x * y + w * z);
    r[4] = 1 - 2 * (x * x + z * z);
    r[5] = 2 * (y * z - w * x);
    r[6] = 2 * (x * z - w * y);
    r[7] = 2 * (y * z + w * x);
    r[8] = 1 - 2 * (x * x + y * y);
}

}  // namespace

void require_finite(const float* values, size_t count, const char* name, int threads) {
    constexpr size_t kBlock = size_t(1) << 20;
    std::atomic<bool> finite{true};
    parallel_for((int)((count + kBlock - 1) / kBlock), threads, [&](int job) {
        uint32_t most = 0;
        for (size_t k = job * kBlock; k < std::min(count, (job + 1) * kBlock); ++k) {
            uint32_t bits;
            std::memcpy(&bits, values + k, 4);
            most = std::max(most, bits & 0x7fffffffu);
        }
        if (most >= 0x7f800000u) finite = false;  // the bits of infinity; those of NaN come after
    });
    if (!finite) throw std::invalid_argument(std::string(name) + " holds values that are not finite");
}

Scene::Scene(const float* means, const float* scales, const float* rotations, const float* opacities, int count_,
             bool surfels_, int threads, bool all, const int32_t* group)
    : serial(next_serial()), count(count_), chunks(0), surfels(surfels_) {
    const int columns = surfels ? 2 : 3;
    require_finite(means, 3 * (size_t)count, "means", threads);
    require_finite(scales, (size_t)columns * count, "scales", threads);
    require_finite(rotations, 4 * (size_t)count, "rotations", threads);
    require_finite(opacities, count, "opacities", threads);
    std::vector<int32_t> seen;
    seen.reserve(count);
    for (int k = 0; k < count; ++k)
        if (all || opacities[k] >= 1.0f / 255) seen.push_back(k);
    if (seen.empty()) return;

    auto radius = [&](int k) {
        float r = 0;
        for (int c = 0; c < columns; ++c) r = std::max(r, scales[(size_t)columns * k + c]);
        return r;
    };
    std::vector<float> radii(seen.size());
    for (size_t k = 0; k < seen.size(); ++k) radii[k] = radius(seen[k]);
    std::nth_element(radii.begin(), radii.begin() + radii.size() / 2, radii.end());
    const float typical = std::max(radii[radii.size() / 2], 1e-12f);

    Extent extent = central_extent(means, seen);
    float side = 1e-12f;
    for (int axis = 0; axis < 3; ++axis) side = std::max(side, extent.high[axis] - extent.low[axis]);
    const float cells = 1 << 18;  // per axis across the central extent; four times that in all
    std::vector<Keyed> order(seen.size());
    for (size_t k = 0; k < seen.size(); ++k) {
        uint64_t key = 0;
        for (int axis = 0; axis < 3; ++axis) {
            float middle = 0.5f * (extent.low[axis] + extent.high[axis]);
            float at = (means[3 * (size_t)seen[k] + axis] - middle) / side * cells + 2 * cells;
            key |= spread_bits((uint64_t)clamped(at, 4 * cells - 1)) << axis;
        }
        // Large Gaussians get chunks of their own: one of them would blow up its neighbours' bounds.
        int size_class = (int)clamped(std::log2(radius(seen[k]) / typical) / 2, 7);
        order[k] = {(uint64_t)size_class << 60 | key, seen[k], group ? group[seen[k]] : 0};
    }
    std::sort(order.begin(), order.end(), [](const Keyed& a, const Keyed& b) {
        return a.group != b.group ? a.group < b.group : a.key != b.key ? a.key < b.key : a.index < b.index;
    });

    std::vector<size_t> begin;  // of each chunk in the order
    for (size_t at = 0; at < order.size(); ++at)
        if (begin.empty() || at - begin.back() == kChunk || order[at].group != order[at - 1].group) begin.push_back(at);
    chunks = (int)begin.size();
    begin.push_back(order.size());
    if (group) {
        for (int chunk = 0; chunk < chunks; ++chunk) chunk_group.push_back(order[begin[chunk]].group);
        groups = chunk_group.back() + 1;
    }
    fixed.resize((size_t)chunks * kFixed * kChunk);
    id.resize((size_t)chunks * kChunk);
    bounds.resize(chunks);
    projected.resize((size_t)chunks * kChunk);
    box.resize((size_t)chunks * 4 * kChunk);
    nearest.resize((size_t)chunks * kChunk);
    flags.resize((size_t)chunks * kChunk);
    won.resize(chunks);
    std::memset(won.get(), 0, chunks);
    reach.resize(chunks);
    state.reset(new std::atomic<uint8_t>[chunks]);
    for (int chunk = 0; chunk < chunks; ++chunk)
        for (size_t slot = 0; slot < kChunk; ++slot) {
            const size_t at = begin[chunk] + slot;
            id[(size_t)chunk * kChunk + slot] = at < begin[chunk + 1] ? order[at].index : -1;
        }
    refresh(means, scales, rotations, opacities, threads);
}

void Scene::refresh(const float* means, const float* scales, const float* rotations, const float* opacities,
                    int threads) {
    const int columns = surfels ? 2 : 3;
    parallel_for((chunks + 63) / 64, threads, [&](int job) {
        for (int chunk = job * 64; chunk < std::min(chunks, job * 64 + 64); ++chunk) {
            float* row = &fixed[(size_t)chunk * kFixed * kChunk];
            Bounds& b = bounds[chunk];
            for (int axis = 0; axis < 3; ++axis) {
                b.low[axis] = std::numeric_limits<float>::infinity();
                b.high[axis] = -b.low[axis];
            }
            for (int slot = 0; slot < kChunk; ++slot) {
                size_t at = (size_t)chunk * kChunk + slot;
                if (id[at] < 0) {
                    for (int f = 0; f < kFixed; ++f) row[f * kChunk + slot] = 0;
                    row[kLogOpacity * kChunk + slot] = -std::numeric_limits<float>::infinity();
                    continue;
                }
                const int k = id[at];
                float r[9];
                rotation_matrix(rotations + 4 * (size_t)k, r);
                const float* s = scales + (size_t)columns * k;
                float log_opacity = 2 * std::log(opacities[k]);
                float level = std::max(log_opacity + kMaxLevel, 0.0f);
                float covariance[6];
                int e = 0;
                for (int i = 0; i < 3; ++i)
                    for (int j = i; j < 3; ++j, ++e) {
                        covariance[e] = 0;
                        for (int c = 0; c < columns; ++c)
                            covariance[e] += (r[3 * i + c] * s[c]) * (r[3 * j + c] * s[c]);
                    }
                const int diagonal[3] = {0, 3, 5};
                for (int axis = 0; axis < 3; ++axis) {
                    float mean = means[3 * (size_t)k + axis];
                    float half = std::sqrt(level * covariance[diagonal[axis]]) * 1.0001f;
                    row[(kMeanX + axis) * kChunk + slot] = mean;
                    b.low[axis] = std::min(b.low[axis], mean - half);
                    b.high[axis] = std::max(b.high[axis], mean + half);
                }
                for (int f = 0; f < 6; ++f)
                    row[(kShape + f) * kChunk + slot] = surfels ? r[3 * (f % 3) + f / 3] * s[f / 3] : covariance[f];
                row[kLogOpacity * kChunk + slot] = log_opacity;
            }
        }
    });
}

size_t Scene::bytes() const {
    return fixed.bytes() + id.bytes() + chunk_group.size() * sizeof(int32_t) + bounds.size() * sizeof(Bounds) +
           projected.bytes() + box.bytes() + nearest.bytes() + flags.bytes() + reach.bytes() + 2 * chunks;
}

namespace {

// Whether all of a box is beyond the left or right edge (axis 0), or the upper or lower one (axis 1), of the picture.
// The low-pass and the dilation reach less than 4 px beyond what is in the box, at the depth of a centre.
bool beside(const float corners[8][3], float z_high, int axis, float focal, float center, int size) {
    const float first = -center / focal, last = ((float)size - center) / focal, more = 4 / focal * z_high;
    bool before = true, after = true;
    for (int corner = 0; corner < 8; ++corner) {
        const float at = corners[corner][axis], z = corners[corner][2];
        before &= at + more < first * z;
        after &= at - more > last * z;
    }
    return before || after;
}

// The chunk's box in the picture; false if it cannot be seen. `least` is its least depth.
bool chunk_box(const Bounds& bounds, const Camera& camera, int box[4], float* least) {
    const float inf = std::numeric_limits<float>::infinity();
    float z_low = inf, z_high = -inf, x_low = inf, x_high = -inf, y_low = inf, y_high = -inf;
    float corners[8][3];
    const float* r = camera.rotation;
    for (int corner = 0; corner < 8; ++corner) {
        float p[3];
        for (int axis = 0; axis < 3; ++axis)
            p[axis] = (corner >> axis & 1 ? bounds.high[axis] : bounds.low[axis]) - camera.eye[axis];
        float* c = corners[corner];
        for (int axis = 0; axis < 3; ++axis)
            c[axis] = r[3 * axis] * p[0] + r[3 * axis + 1] * p[1] + r[3 * axis + 2] * p[2];
        z_low = std::min(z_low, c[2]);
        z_high = std::max(z_high, c[2]);
        float scale = 1 / std::max(c[2], 1e-20f);
        x_low = std::min(x_low, c[0] * scale);
        x_high = std::max(x_high, c[0] * scale);
        y_low = std::min(y_low, c[1] * scale);
        y_high = std::max(y_high, c[1] * scale);
    }
    if (z_high <= camera.near) return false;
    *least = std::max(z_low, camera.near);
    if (z_low < 1e-4f * z_high || z_low <= 0) {  // reaches behind the eye: may be anywhere that is not beside
        if (beside(corners, z_high, 0, camera.fx, camera.cx, camera.width) ||
            beside(corners, z_high, 1, camera.fy, camera.cy, camera.height))
            return false;
        box[0] = 0, box[1] = camera.width, box[2] = 0, box[3] = camera.height;
        return true;
    }
    const float margin = 4;  // px: the low-pass (2.4), the dilation (1.9) and rounding
    // An end that is not a number may be anywhere.
    auto first = [](float v, float limit) { return (int)clamped(v, limit); };
    auto last = [](float v, float limit) { return (int)(v < limit ? std::max(v, 0.0f) : limit); };
    box[0] = first(camera.fx * x_low + camera.cx - margin, camera.width);
    box[1] = last(camera.fx * x_high + camera.cx + margin, camera.width);
    box[2] = first(camera.fy * y_low + camera.cy - margin, camera.height);
    box[3] = last(camera.fy * y_high + camera.cy + margin, camera.height);
    return box[0] < box[1] && box[2] < box[3];
}

}  // namespace

void await_projected(std::atomic<uint8_t>& state) {
    constexpr int kSpins = 1000;  // ours: a chunk takes less, unless the machine gives its thread no time
    for (int spin = 0; spin < kSpins; ++spin) {
        if (state.load(std::memory_order_acquire) == 2) return;
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    uint8_t seen = 1;
    if (!state.compare_exchange_strong(seen, 3, std::memory_order_acq_rel) && seen == 2) return;
    wait_until(state, 2);
}

void begin_frame(Scene& scene, const Camera& camera, TileLists& lists, const uint8_t* shown) {
    lists.columns = (camera.width + kTile - 1) / kTile;
    lists.rows = (camera.height + kTile - 1) / kTile;
    const int tiles = lists.columns * lists.rows;
    lists.begin.assign(tiles + 1, 0);
    lists.inverse_near.assign(scene.chunks, 0);
    lists.box.resize(scene.chunks);

    struct Seen {
        float least;
        int chunk;
        int tile[4];
    };
    std::vector<Seen> seen;
    seen.reserve(scene.chunks);
    for (int chunk = 0; chunk < scene.chunks; ++chunk) {
        scene.state[chunk].store(0, std::memory_order_relaxed);
        if (shown && !shown[scene.chunk_group[chunk]]) continue;
        int box[4];
        float least;
        if (!chunk_box(scene.bounds[chunk], camera, box, &least)) continue;
        lists.inverse_near[chunk] = kNearer / least;
        lists.box[chunk] = {box[0], box[1], box[2], box[3]};
        seen.push_back({least, chunk, {box[0] / kTile, (box[1] - 1) / kTile, box[2] / kTile, (box[3] - 1) / kTile}});
    }
    std::sort(seen.begin(), seen.end(),
              [](const Seen& a, const Seen& b) { return a.least != b.least ? a.least < b.least : a.chunk < b.chunk; });
    auto each_tile = [&](const Seen& s, auto&& visit) {
        for (int y = s.tile[2]; y <= s.tile[3]; ++y)
            for (int x = s.tile[0]; x <= s.tile[1]; ++x) visit(y * lists.columns + x);
    };
    for (const Seen& s : seen) each_tile(s, [&](int tile) { ++lists.begin[tile + 1]; });
    for (int tile = 0; tile < tiles; ++tile) lists.begin[tile + 1] += lists.begin[tile];
    lists.chunk.resize(lists.begin[tiles]);
    std::vector<size_t> cursor(lists.begin.begin(), lists.begin.end() - 1);
    for (const Seen& s : seen) each_tile(s, [&](int tile) { lists.chunk[cursor[tile]++] = s.chunk; });
}

}  // namespace hush
