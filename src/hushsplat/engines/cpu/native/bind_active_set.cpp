// The active set: a state in, a picture and the next state out.
#include <memory>
#include <optional>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/unique_ptr.h>

#include "active_set.h"
#include "arrays.h"
#include "interpreter.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, class... Shape>
using Array = nb::ndarray<T, Shape..., nb::c_contig, nb::device::cpu>;
using Means = Array<const float, nb::shape<-1, 3>>;
using Harmonics = Array<const float, nb::shape<-1, -1, 3>>;
using Pixels = Array<float, nb::shape<-1, -1>>;
using Pixels3 = Array<float, nb::shape<-1, -1, 3>>;

void require(bool condition, const char* message) {
    if (!condition) throw nb::value_error(message);
}

template <class Output>
void require_picture(const hush::Camera& camera, const Output& output) {
    require((int)output.shape(0) == camera.height && (int)output.shape(1) == camera.width,
            "an output has not the camera's size");
}

std::unique_ptr<hush::ActiveSet> draw(hush::Scene& scene, const hush::Camera& camera, Harmonics sh, Means means,
                                      Array<const float, nb::shape<3>> background,
                                      const hush::ActiveSetSettings& settings,
                                      Array<const float, nb::shape<-1, hush::kTable>> levels,
                                      Array<const uint32_t, nb::shape<-1>> sequence, const hush::ActiveSet* previous,
                                      bool by_center, int threads, Pixels3 color, Pixels alpha,
                                      std::optional<Pixels> depth, std::optional<hush::Groups> shown) {
    const size_t count = (size_t)scene.count, k = sh.shape(1);
    require(sh.shape(0) == count && means.shape(0) == count, "sh and means must be the scene's");
    require(k == 1 || k == 4 || k == 9 || k == 16, "sh must have 1, 4, 9 or 16 coefficients");
    require(levels.shape(0) == sequence.shape(0), "one table per sample");
    require(settings.discovery != hush::Discovery::stream || levels.shape(0) >= 1, "at least one sample");
    require_picture(camera, color);
    require_picture(camera, alpha);
    if (depth) require_picture(camera, *depth);
    if (previous && previous->words() != (size_t)2 * scene.chunks) previous = nullptr;  // of another scene
    hush::ActiveJob job{settings,
                        {levels.data(), sequence.data(), (int)levels.shape(0)},
                        by_center ? hush::Order::center : hush::Order::pixel,
                        previous,
                        nullptr,
                        {color.data(), alpha.data(), depth ? depth->data() : nullptr, nullptr, {}}};
    for (int c = 0; c < 3; ++c) job.out.background[c] = background(c);
    const hush::Colors colors{sh.data(), (int)k, means.data(), (int)count};
    hush::GilReleased release;
    auto next = std::make_unique<hush::ActiveSet>(scene.chunks, camera);
    next->frame = previous ? previous->frame + 1 : 1;
    job.next = next.get();
    std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
    hush::TileLists lists;
    hush::begin_frame(scene, camera, lists, hush::shown_of(scene, shown));
    hush::kernels().active_set(scene, camera, lists, colors, threads, job);
    return next;
}

}  // namespace

void bind_active_set(nb::module_& m) {
    nb::class_<hush::ActiveSet>(m, "ActiveSet")
        .def_ro("frame", &hush::ActiveSet::frame)
        .def_prop_ro("bytes", &hush::ActiveSet::bytes)
        .def_prop_ro("members", [](const hush::ActiveSet& s) { return s.counts.members; })
        .def_prop_ro("fresh", [](const hush::ActiveSet& s) { return s.counts.fresh; })
        .def_prop_ro("entries", [](const hush::ActiveSet& s) { return s.counts.entries; })
        .def_prop_ro("pairs", [](const hush::ActiveSet& s) { return s.counts.pairs; })
        .def_prop_ro("rays", [](const hush::ActiveSet& s) { return s.counts.rays; })
        .def_prop_ro("stage_ms",
                     [](const hush::ActiveSet& s) {
                         const char* names[] = {"read profiles", "find members", "make members", "bin", "draw", "keep"};
                         nb::dict times;
                         for (int k = 0; k < hush::kActiveStages; ++k) times[names[k]] = s.stage_ms[k];
                         return times;
                     })
        .def_prop_ro("searched", [](const hush::ActiveSet& s) { return s.counts.searched; })
        .def(
            "is_member",
            [](const hush::ActiveSet& set, const hush::Scene& scene, Array<bool, nb::shape<-1>> out) {
                require(set.words() == (size_t)2 * scene.chunks && (int)out.shape(0) == scene.count,
                        "the set is of another scene");
                for (int k = 0; k < scene.count; ++k) out(k) = false;
                for (size_t slot = 0; slot < (size_t)scene.chunks * hush::kChunk; ++slot)
                    if (scene.id[slot] >= 0 && set.members[slot / 64] >> slot % 64 & 1) out(scene.id[slot]) = true;
            },
            "scene"_a, "out"_a.noconvert(), "Which Gaussians of the file go on to the next frame.");
    m.def("draw_active_set", &draw, "scene"_a, "camera"_a, "sh"_a.noconvert(), "means"_a.noconvert(),
          "background"_a.noconvert(), "settings"_a, "levels"_a.noconvert(), "sequence"_a.noconvert(),
          "previous"_a.none(), "by_center"_a, "threads"_a, "color"_a.noconvert(), "alpha"_a.noconvert(),
          "depth"_a.noconvert().none(), "shown"_a.noconvert().none() = nb::none());
}
