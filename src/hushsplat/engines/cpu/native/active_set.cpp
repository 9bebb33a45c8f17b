// A frame of the active set: who was seen joins it, all of it is projected, binned, ordered and blended, and who no
// longer matters leaves.
#include <ctime>

#include "active_tile.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

constexpr int kParts = 32;  // of the set, each worked on at once; fixed, so that nothing depends on how many threads do

// Which chunks a part holds, and where its records begin.
struct Parts {
    int chunk[kParts + 1];
    size_t first[kParts + 1];
    size_t count[kParts] = {};  // records made
};

Parts divide(const uint64_t* members, int chunks) {
    Parts parts;
    auto in_chunk = [&](int c) {
        return __builtin_popcountll(members[2 * c]) + __builtin_popcountll(members[2 * c + 1]);
    };
    size_t all = 0, so_far = 0;
    for (int c = 0; c < chunks; ++c) all += in_chunk(c);
    int part = 0;
    for (int c = 0; c < chunks; ++c) {
        while (part < kParts && so_far >= all * part / kParts) {
            parts.chunk[part] = c;
            parts.first[part++] = so_far;
        }
        so_far += in_chunk(c);
    }
    for (; part <= kParts; ++part) parts.chunk[part] = chunks, parts.first[part] = all;
    return parts;
}

// Calls visit(slot) for every member of a part that is in the picture, projecting chunks as needed.
template <class Visit>
void each_member(Scene& scene, const Camera& camera, const uint64_t* members, int begin, int end, Visit&& visit) {
    for (int chunk = begin; chunk < end; ++chunk) {
        if (!(members[2 * chunk] | members[2 * chunk + 1])) continue;
        if (scene.state[chunk].load(std::memory_order_acquire) != 2)  // a chunk belongs to one part: nobody else asks
            project_some(scene, camera, chunk, members + 2 * chunk);
        const int16_t* box = &scene.box[(size_t)chunk * 4 * kChunk];
        for (int word = 0; word < 2; ++word)
            for (uint64_t left = members[2 * chunk + word]; left; left &= left - 1) {
                const int slot = 64 * word + __builtin_ctzll(left);
                if (box[slot] < box[kChunk + slot] && box[2 * kChunk + slot] < box[3 * kChunk + slot])
                    visit(chunk * kChunk + slot);
            }
    }
}

// Colours that the last frame's members had, as long as their chunk is seen from nearly where it was then.
class ColorSource {
public:
    ColorSource(const Scene& scene, const Camera& camera, const ActiveSet* previous, float angle)
        : scene_(scene), camera_(camera), previous_(previous), angle_(angle) {}

    // Where the chunk's colours are seen from in this frame: this one's eye or an earlier one.
    void enter(int chunk, float eye[3]) {
        known_[0] = known_[1] = 0;
        std::copy_n(camera_.eye, 3, eye);
        if (!previous_ || !(previous_->members[2 * chunk] | previous_->members[2 * chunk + 1])) return;
        const float* then = previous_->colors->eye.get() + (size_t)3 * chunk;
        const Bounds& bounds = scene_.bounds[chunk];
        float moved = 0, distance = 0;
        for (int axis = 0; axis < 3; ++axis) {
            const float gap =
                std::max({bounds.low[axis] - camera_.eye[axis], camera_.eye[axis] - bounds.high[axis], 0.0f});
            const float shift = camera_.eye[axis] - then[axis];
            distance += gap * gap, moved += shift * shift;
        }
        if (moved > angle_ * angle_ * distance) return;
        std::copy_n(then, 3, eye);
        for (int word = 0; word < 2; ++word) known_[word] = previous_->members[2 * chunk + word];
        first_ = previous_->colors->first[chunk];
    }

    // The number of the slot's colour in the last frame, -1 if it has none.
    int32_t find(int slot) const {
        const int word = slot / 64;
        const uint64_t bit = 1ull << slot % 64;
        if (!(known_[word] & bit)) return -1;
        return (int32_t)(first_ + (word ? __builtin_popcountll(known_[0]) : 0) +
                         __builtin_popcountll(known_[word] & (bit - 1)));
    }

private:
    const Scene& scene_;
    const Camera& camera_;
    const ActiveSet* previous_;  // null: nothing is kept
    const float angle_;          // tangent
    uint64_t known_[2] = {};
    uint32_t first_ = 0;
};

// One frame at work.
class Frame {
public:
    Frame(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
          const ActiveJob& job)
        : scene_(scene),
          camera_(camera),
          lists_(lists),
          colors_(colors),
          threads_(threads),
          job_(job),
          columns_((camera.width + kSetTile - 1) / kSetTile),
          rows_((camera.height + kSetTile - 1) / kSetTile),
          previous_(job.previous),
          profiles_((size_t)columns_ * rows_) {
        has_profile_ = previous_ && previous_->frame > 0 && previous_->camera.width == camera.width &&
                       previous_->camera.height == camera.height;
    }

    void run() {
        Parts parts;
        timed(kReadProfiles, [&] { read_profiles(); });
        timed(kFindMembers, [&] { find_members(); });
        if (job_.order == Order::pixel) return run_by_pixel();
        timed(kMakeMembers, [&] { parts = make_members(); });
        timed(kBin, [&] { bin(parts); });
        timed(kDraw, [&] { draw(); });
        timed(kKeep, [&] { keep(parts); });
    }

private:
    // Each pixel orders its own fragments.
    void run_by_pixel() {
        const uint64_t* members = job_.next->members.get();
        Parts parts = divide(members, scene_.chunks);
        timed(kMakeMembers, [&] {
            parallel_for(kParts, threads_, [&](int part) {
                each_member(scene_, camera_, members, parts.chunk[part], parts.chunk[part + 1],
                            [&](int) { ++parts.count[part]; });
            });
        });
        Recycling<uint64_t> kept(job_.next->words());
        std::memset(kept.get(), 0, kept.size() * 8);
        std::vector<float> finished(tiles());
        for (int tile = 0; tile < tiles(); ++tile) finished[tile] = profiles_[tile].seen.most;
        const ActiveSetSettings& settings = job_.settings;
        const MemberJob set = {members,        kept.get(),    finished.data(), columns_,
                               settings.prune, settings.stop, job_.next};
        timed(kDraw, [&] {
            clear_profile();
            SortedOutput out = job_.out;
            out.set = &set;
            exact(scene_, camera_, lists_, colors_, threads_, out);
        });
        timed(kKeep, [&] {
            ActiveCounts& counts = job_.next->counts;
            for (size_t drawn : parts.count) counts.members += (int64_t)drawn;
            for (size_t word = 0; word < kept.size(); ++word)
                counts.fresh += __builtin_popcountll(kept[word] & ~(previous_ ? previous_->members[word] : 0));
            std::memcpy(job_.next->members.get(), kept.get(), kept.size() * 8);
        });
    }

    // Cells outside the picture have no light.
    void clear_profile() { std::fill_n(job_.next->profile.get(), job_.next->profile.size(), 0.0f); }

    int tiles() const { return columns_ * rows_; }

    template <class Work>
    void timed(ActiveStage stage, Work&& work) {
        const std::clock_t start = std::clock();
        work();
        job_.next->stage_ms[stage] = 1e3f * (float)(std::clock() - start) / CLOCKS_PER_SEC;
    }

    void read_profiles() {
        const FrameChange change(camera_, previous_ ? previous_->camera : camera_);
        const ActiveSet* before = has_profile_ ? previous_ : nullptr;
        float nearest = kUnknown, farthest;
        if (before) depth_range(*before, 0, 0, std::max(before->cell_columns, before->cell_rows), &nearest, &farthest);
        parallel_for(rows_, threads_, [&](int row) {
            for (int tile = row * columns_; tile < (row + 1) * columns_; ++tile)
                profiles_[tile].read(before, change, tile % columns_ * kSetTile, row * kSetTile, job_.settings.reach_px,
                                     nearest);
        });
    }

    void find_members() {
        uint64_t* members = job_.next->members.get();
        const Discovery how = job_.settings.discovery;
        if (previous_ && how != Discovery::everything)
            std::memcpy(members, previous_->members.get(), job_.next->words() * 8);
        else
            std::memset(members, 0, job_.next->words() * 8);
        const std::vector<uint8_t> wanted = plan_search();
        if (how == Discovery::stream)
            discover(scene_, camera_, lists_, job_.random, wanted.data(), threads_, members);
        else
            search(wanted, members);
        for (uint8_t times : wanted) job_.next->counts.searched += times;
    }

    // How often each tile is searched: now if nothing is known of it or enough may have come from behind something,
    // else when its turn comes.
    std::vector<uint8_t> plan_search() {
        const int count = lists_.columns * lists_.rows;
        const bool stream = job_.settings.discovery == Discovery::stream;
        const int first = stream ? std::min(job_.settings.first_samples, job_.random.samples) : 1;
        std::vector<uint8_t> wanted(count, 0);
        for (int tile = 0; tile < count; ++tile) {
            bool known = true;
            float moves = 0;  // px in this frame
            each_inside(tile, [&](int index) {
                known &= profiles_[index].known;
                moves = std::max(moves, profiles_[index].window.parallax);
            });
            const float moved = moves + (has_profile_ ? previous_->parallax[tile] : 0);
            if (job_.settings.discovery == Discovery::everything || !known)
                wanted[tile] = (uint8_t)first;
            else if ((tile + (int)job_.next->frame) % job_.settings.period == 0)
                wanted[tile] = 1;
            else if (moved >= job_.settings.parallax_px) {
                wanted[tile] = 1;
                each_inside(tile, [&](int index) {
                    profiles_[index].seek_uncovered(*previous_, index % columns_ * kSetTile,
                                                    index / columns_ * kSetTile, moved / moves);
                });
            }
            job_.next->parallax[tile] = wanted[tile] ? 0 : moved;
        }
        return wanted;
    }

    // Calls visit(tile of the set) for those within a tile of kTile px.
    template <class Visit>
    void each_inside(int tile, Visit&& visit) const {
        constexpr int kSide = kTile / kSetTile;
        const int x0 = tile % lists_.columns * kSide, y0 = tile / lists_.columns * kSide;
        for (int y = y0; y < std::min(y0 + kSide, rows_); ++y)
            for (int x = x0; x < std::min(x0 + kSide, columns_); ++x) visit(y * columns_ + x);
    }

    // Depths between which the blocks of a tile of kTile px are finished.
    struct Ends {
        float least, most;
    };
    Ends ends(int tile) const {
        Ends found = {kUnknown, 0};
        each_inside(tile, [&](int index) {
            found.least = std::min(found.least, profiles_[index].sought.least());
            found.most = std::max(found.most, profiles_[index].sought.most);
        });
        return found;
    }

    // All Gaussians of these tiles that begin before the light of the last frame ended become members.
    void search(const std::vector<uint8_t>& wanted, uint64_t* members) {
        parallel_for((int)wanted.size(), threads_, [&](int index) {
            if (!wanted[index]) return;
            const Ends end = ends(index);
            const Tile tile = tile_at(lists_, camera_, index);
            for (size_t k = lists_.begin[index]; k < lists_.begin[index + 1]; ++k) {
                const int chunk = lists_.chunk[k];
                if (lists_.inverse_near[chunk] * end.most < 1) break;  // and all behind it
                const ChunkBox& around = lists_.box[chunk];
                if (!sought(tile, end, around.x0, around.x1, around.y0, around.y1, 1 / lists_.inverse_near[chunk]))
                    continue;
                ensure_projected(scene_, camera_, chunk);
                const ChunkReach& reach = scene_.reach[chunk];  // by far smaller than the box of its bounds
                if (!sought(tile, end, reach.x0, reach.x1, reach.y0, reach.y1, 1 / reach.nearest)) continue;
                const int16_t* box = &scene_.box[(size_t)chunk * 4 * kChunk];
                uint64_t seen[2] = {};
                each_in_tile(scene_, chunk, tile, [&](int slot) {
                    if (sought(tile, end, box[slot], box[kChunk + slot], box[2 * kChunk + slot], box[3 * kChunk + slot],
                               center_depth(chunk * kChunk + slot)))
                        seen[slot / 64] |= 1ull << slot % 64;
                });
                for (int word = 0; word < 2; ++word)
                    if (seen[word] & ~__atomic_load_n(members + 2 * chunk + word, __ATOMIC_RELAXED))
                        __atomic_fetch_or(members + 2 * chunk + word, seen[word], __ATOMIC_RELAXED);
            }
        });
    }

    Parts make_members() {
        const uint64_t* members = job_.next->members.get();
        Parts parts = divide(members, scene_.chunks);
        const size_t most = parts.first[kParts] + 8;
        record_ = std::make_unique<Recycling<Record>>(most);
        box_ = std::make_unique<Recycling<PixelBox>>(most);
        slot_ = std::make_unique<Recycling<int32_t>>(most);
        matters_ = std::make_unique<Recycling<uint8_t>>(most);
        counts_ = std::make_unique<Recycling<int>>((size_t)kParts * tiles());
        if (job_.settings.color_deg > 0 && job_.settings.discovery != Discovery::everything)
            job_.next->colors = std::make_unique<KeptColors>(scene_, colors_, most);
        auto make = scene_.surfels ? &Frame::make_part<true> : &Frame::make_part<false>;
        parallel_for(kParts, threads_, [&](int part) { (this->*make)(parts, part); });
        return parts;
    }

    template <bool Surfels>
    void make_part(Parts& parts, int part) {
        int* counts = counts_->get() + (size_t)part * tiles();
        std::memset(counts, 0, tiles() * sizeof(int));
        const float log2_prune = std::log2(job_.settings.prune);
        size_t made = parts.first[part];
        // Members wait in a ring until their colours have come from memory.
        constexpr unsigned kRing = 64, kAhead = 48;
        struct Waiting {
            int32_t slot, color;
        };
        Waiting ring[kRing];
        unsigned in = 0, out = 0;
        KeptColors* kept = job_.next->colors.get();
        const bool go_on = kept && previous_ && previous_->colors && previous_->colors->are_of(scene_, colors_);
        const ActiveSet* before = go_on ? previous_ : nullptr;
        ColorSource source(scene_, camera_, before, std::tan(job_.settings.color_deg * 0.017453292519943295f));
        auto make_eight = [&](int n) {
            int32_t slot[8], color[8];
            for (int k = 0; k < 8; ++k) {
                const Waiting& next = ring[(out + (k < n ? k : 0)) % kRing];
                slot[k] = next.slot, color[k] = next.color;
            }
            out += n;
            Record records[8];
            PixelBox boxes[8];
            make_records<Surfels>(scene_, slot, log2_prune, job_.settings.ellipse_error, records, boxes);
            for (int k = 0; k < n; ++k) {
                const PixelBox& box = boxes[k];
                if (box.x0 >= box.x1 || box.y0 >= box.y1) continue;
                Record& r = (*record_)[made] = records[k];
                if (color[k] >= 0)
                    std::memcpy(&r.red, before->colors->rgb.get() + (size_t)3 * color[k], 12);
                else
                    set_color(slot[k], kept ? kept->eye.get() + (size_t)3 * (slot[k] / kChunk) : camera_.eye, r);
                (*box_)[made] = box;
                (*slot_)[made] = slot[k];
                (*matters_)[made] = 0;
                ++made;
                each_tile(box, center_depth(slot[k]), [&](int tile) { ++counts[tile]; });
            }
        };
        int chunk = -1;
        each_member(scene_, camera_, job_.next->members.get(), parts.chunk[part], parts.chunk[part + 1], [&](int slot) {
            if (kept && slot / kChunk != chunk) {
                chunk = slot / kChunk;
                source.enter(chunk, kept->eye.get() + (size_t)3 * chunk);
            }
            const int32_t color = source.find(slot % kChunk);
            if (color < 0) prefetch_harmonics(colors_, scene_.id[slot]);
            ring[in++ % kRing] = {slot, color};
            if (in - out == kAhead + 8) make_eight(8);
        });
        while (in != out) make_eight(in - out < 8 ? (int)(in - out) : 8);
        parts.count[part] = made - parts.first[part];
    }

    HUSH_MEMBER void set_color(int slot, const float eye[3], Record& r) const {
        // The mean is where the projection has just read it, not in the arrays of the file.
        const float* row = &scene_.fixed[(size_t)(slot / kChunk) * kFixed * kChunk] + slot % kChunk;
        const float mean[3] = {row[kMeanX * kChunk], row[kMeanY * kChunk], row[kMeanZ * kChunk]};
        const f32x4 rgb = color_at(colors_, mean, eye, scene_.id[slot]);
        r.red = rgb[0], r.green = rgb[1], r.blue = rgb[2];
    }

    float center_depth(int slot) const { return 1 / scene_.projected[slot].inverse_depth; }

    // Tiles under a box.
    template <class Visit>
    HUSH_MEMBER void each_under(const PixelBox& box, Visit&& visit) const {
        for (int y = box.y0 / kSetTile; y <= (box.y1 - 1) / kSetTile; ++y)
            for (int x = box.x0 / kSetTile; x <= (box.x1 - 1) / kSetTile; ++x) visit(x, y);
    }

    // Those where light still reached this depth.
    template <class Visit>
    HUSH_MEMBER void each_tile(const PixelBox& box, float depth, Visit&& visit) const {
        each_under(box, [&](int x, int y) {
            const int tile = y * columns_ + x;
            if (profiles_[tile].seen.reach(box, x * kSetTile, y * kSetTile, depth)) visit(tile);
        });
    }

    // Whether anything of this depth is sought under the part of the box that lies in a tile of kTile px.
    HUSH_MEMBER bool sought(const Tile& tile, const Ends& end, int x0, int x1, int y0, int y1, float depth) const {
        if (x0 >= tile.x0 + tile.width || x1 <= tile.x0 || y0 >= tile.y0 + tile.height || y1 <= tile.y0) return false;
        if (depth <= end.least || depth > end.most) return depth <= end.least;
        auto clip = [](int v, int low, int high) { return (int16_t)(v < low ? low : v > high ? high : v); };
        const int right = tile.x0 + tile.width, bottom = tile.y0 + tile.height;
        const PixelBox box = {clip(x0, tile.x0, right), clip(x1, tile.x0, right), clip(y0, tile.y0, bottom),
                              clip(y1, tile.y0, bottom)};
        bool found = false;
        each_under(box, [&](int x, int y) {
            found |= profiles_[y * columns_ + x].sought.reach(box, x * kSetTile, y * kSetTile, depth);
        });
        return found;
    }

    void bin(const Parts& parts) {
        begin_.resize(tiles() + 1);
        size_t total = 0;
        for (int tile = 0; tile < tiles(); ++tile) {
            begin_[tile] = total;
            for (int part = 0; part < kParts; ++part) {
                int& count = (*counts_)[(size_t)part * tiles() + tile];
                const int here = count;
                count = (int)(total - begin_[tile]);
                total += here;
            }
        }
        begin_[tiles()] = total;
        entries_ = std::make_unique<Recycling<TileEntry>>(total);
        parallel_for(kParts, threads_, [&](int part) {
            int* at = counts_->get() + (size_t)part * tiles();
            for (size_t m = parts.first[part]; m < parts.first[part] + parts.count[part]; ++m) {
                const float depth = center_depth((*slot_)[m]);
                const TileEntry entry = tile_entry(depth, (uint32_t)m);
                each_tile((*box_)[m], depth, [&](int tile) { (*entries_)[begin_[tile] + at[tile]++] = entry; });
            }
        });
        job_.next->counts.entries = (int64_t)total;
    }

    void draw() {
        const Members members = {record_->get(), box_->get(), slot_->get(), matters_->get(), scene_.id.get()};
        const TileJob job = {members, camera_, job_.settings, job_.out, job_.next, scene_.surfels};
        auto* draw_tile = scene_.surfels ? (job_.out.depth ? draw_set_tile<true, true> : draw_set_tile<true, false>)
                                         : (job_.out.depth ? draw_set_tile<false, true> : draw_set_tile<false, false>);
        std::atomic<int64_t> pairs{0};
        parallel_for(tiles(), threads_, [&](int tile) {
            static thread_local TileScratch scratch;
            pairs += (int64_t)draw_tile(job, tile % columns_, tile / columns_, entries_->get() + begin_[tile],
                                        (int)(begin_[tile + 1] - begin_[tile]), scratch);
        });
        job_.next->counts.pairs = pairs;
    }

    // Who mattered stays.
    void keep(const Parts& parts) {
        ActiveCounts& counts = job_.next->counts;
        std::mutex mutex;
        parallel_for(kParts, threads_, [&](int part) {
            uint64_t* members = job_.next->members.get();
            std::memset(members + 2 * parts.chunk[part], 0, 16 * (size_t)(parts.chunk[part + 1] - parts.chunk[part]));
            int64_t rays = 0, fresh = 0;
            KeptColors* colors = job_.next->colors.get();
            size_t stays = parts.first[part];
            int chunk = -1;
            for (size_t m = parts.first[part]; m < parts.first[part] + parts.count[part]; ++m) {
                rays += (*record_)[m].is_ray();
                if (!(*matters_)[m]) continue;
                const uint32_t slot = (*slot_)[m];
                const uint64_t bit = 1ull << (slot & 63);
                members[slot >> 6] |= bit;
                if (colors) {
                    if ((int)(slot / kChunk) != chunk) colors->first[chunk = slot / kChunk] = (uint32_t)stays;
                    std::memcpy(colors->rgb.get() + 3 * stays++, &(*record_)[m].red, 12);
                }
                fresh += !previous_ || !(previous_->members[slot >> 6] & bit);
            }
            std::lock_guard<std::mutex> lock(mutex);
            counts.rays += rays;
            counts.members += (int64_t)parts.count[part];
            counts.fresh += fresh;
        });
    }

    Scene& scene_;
    const Camera& camera_;
    const TileLists& lists_;
    const Colors& colors_;
    const int threads_;
    const ActiveJob& job_;
    const int columns_, rows_;  // tiles of the set
    const ActiveSet* previous_;
    bool has_profile_;
    Recycling<TileProfile> profiles_;
    std::unique_ptr<Recycling<Record>> record_;
    std::unique_ptr<Recycling<PixelBox>> box_;
    std::unique_ptr<Recycling<int32_t>> slot_;
    std::unique_ptr<Recycling<uint8_t>> matters_;
    std::unique_ptr<Recycling<int>> counts_;  // [part][tile]
    std::unique_ptr<Recycling<TileEntry>> entries_;
    std::vector<size_t> begin_;  // [tile + 1]
};

}  // namespace

void active_set(Scene& scene, const Camera& camera, const TileLists& lists, const Colors& colors, int threads,
                const ActiveJob& job) {
    Frame(scene, camera, lists, colors, threads, job).run();
}

}  // namespace hush::HUSH_ISA
