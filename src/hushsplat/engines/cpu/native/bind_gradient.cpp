// The Python side of the differentiable rasters (learn/raster.py) and of the optimiser.
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>

#include "arrays.h"
#include "engine.h"
#include "interpreter.h"
#include "threads.h"

namespace nb = nanobind;
using namespace nb::literals;
using hush::Array;
using hush::operator""_array;
using hush::require;

namespace {

template <class T, int Columns>
using Rows = Array<T, nb::shape<-1, Columns>>;
template <class T>
using Picture = Array<T, nb::shape<-1, -1, -1>>;

// The parameters of surfels as they are drawn, and beside them where their gradients go.
template <class T>
struct Surfels {
    Rows<T, 3> means;
    Rows<T, 2> scales;
    Rows<T, 4> rotations;
    Array<T, nb::shape<-1>> opacities;
    Array<T, nb::shape<-1, -1, 3>> sh;

    void check(size_t n) const {
        require(means.shape(0) == n && scales.shape(0) == n && rotations.shape(0) == n && opacities.shape(0) == n &&
                    sh.shape(0) == n,
                "arrays differ in length, or are not of this scene");
        const size_t k = sh.shape(1);
        require(k == 1 || k == 4 || k == 9 || k == 16, "sh must have 1, 4, 9 or 16 coefficients");
    }
    hush::Colors colors() const { return {sh.data(), (int)sh.shape(1), means.data(), (int)means.shape(0)}; }
};

// A picture to train on: what was drawn, or what the loss says about it.
template <class T>
struct Drawn {
    Picture<T> color, alpha;
    std::optional<Picture<T>> geometry;

    void check(const hush::Camera& camera) const {
        auto fits = [&](const Picture<T>& p, size_t channels) {
            hush::require_size(p, camera.height, camera.width, "a picture has not the camera's size");
            require(p.shape(2) == channels, "a picture has another number of channels");
        };
        fits(color, 3);
        fits(alpha, 1);
        if (geometry) fits(*geometry, hush::kGeometry);
    }
};

using In = Surfels<const float>;
using Out = Surfels<float>;

template <class T>
void bind_surfels(nb::module_& m, const char* name) {
    using S = Surfels<T>;
    nb::class_<S>(m, name).def(
        "__init__",
        [](S* self, Rows<T, 3> means, Rows<T, 2> scales, Rows<T, 4> rotations, Array<T, nb::shape<-1>> opacities,
           Array<T, nb::shape<-1, -1, 3>> sh) {
            S surfels{means, scales, rotations, opacities, sh};
            surfels.check(means.shape(0));
            new (self) S(std::move(surfels));
        },
        "means"_array, "scales"_array, "rotations"_array, "opacities"_array, "sh"_array);
}

template <class T>
void bind_drawn(nb::module_& m, const char* name) {
    using D = Drawn<T>;
    nb::class_<D>(m, name).def(
        "__init__",
        [](D* self, Picture<T> color, Picture<T> alpha, std::optional<Picture<T>> geometry) {
            new (self) D{color, alpha, geometry};
        },
        "color"_array, "alpha"_array, "geometry"_array.none());
}

hush::SortedOutput output_of(const Drawn<float>& drawn, const Array<const float, nb::shape<3>>& background) {
    hush::SortedOutput out{drawn.color.data(), drawn.alpha.data(), nullptr, nullptr, {}};
    for (int c = 0; c < 3; ++c) out.background[c] = background(c);
    if (drawn.geometry) out.geometry = drawn.geometry->data();
    return out;
}

hush::GradientJob job_of(const hush::Camera& camera, const In& surfels, const Drawn<const float>& drawn,
                         const Drawn<const float>& by_drawn, const Out& gradients, const Rows<float, 2>& by_center,
                         const Array<uint8_t, nb::shape<-1>>& seen) {
    const size_t n = surfels.means.shape(0);
    drawn.check(camera);
    by_drawn.check(camera);
    gradients.check(n);
    require(gradients.sh.shape(1) == surfels.sh.shape(1), "gradients have another number of harmonics");
    require(by_center.shape(0) == n && seen.shape(0) == n, "arrays differ in length");
    require(drawn.geometry.has_value() == by_drawn.geometry.has_value(), "geometry must be given twice or not at all");
    hush::GradientJob job{};
    job.color = drawn.color.data(), job.alpha = drawn.alpha.data();
    job.by_color = by_drawn.color.data(), job.by_alpha = by_drawn.alpha.data();
    if (drawn.geometry) job.geometry = drawn.geometry->data(), job.by_geometry = by_drawn.geometry->data();
    job.scales = surfels.scales.data(), job.rotations = surfels.rotations.data(),
    job.opacities = surfels.opacities.data();
    job.by_means = gradients.means.data(), job.by_scales = gradients.scales.data();
    job.by_rotations = gradients.rotations.data(), job.by_opacities = gradients.opacities.data();
    job.by_sh = gradients.sh.data();
    job.by_center = by_center.data(), job.seen = seen.data();
    return job;
}

}  // namespace

void bind_gradient(nb::module_& m) {
    bind_surfels<const float>(m, "Surfels");
    bind_surfels<float>(m, "SurfelGradients");
    bind_drawn<float>(m, "Drawing");
    bind_drawn<const float>(m, "Drawn");
    nb::class_<hush::FragmentTape>(m, "FragmentTape")
        .def(nb::init<>())
        .def_prop_ro("fragments", [](const hush::FragmentTape& tape) {
            size_t count = 0;
            for (const auto& patch : tape.patches) count += patch.records.size();
            return count;
        });

    // A scene whose values change; its surfels keep their places in memory until another one is made.
    struct TrainedScene : hush::Scene {
        explicit TrainedScene(const In& s, int threads)
            : hush::Scene(s.means.data(), s.scales.data(), s.rotations.data(), s.opacities.data(),
                          (int)s.means.shape(0), true, threads, true) {}
    };
    nb::class_<TrainedScene>(m, "TrainedScene")
        .def(
            "__init__",
            [](TrainedScene* self, const In& surfels, int threads) {
                hush::require_count(surfels.means.shape(0));
                hush::GilReleased release;
                new (self) TrainedScene(surfels, threads);
            },
            "surfels"_a, "threads"_a)
        .def_ro("count", &TrainedScene::count)
        .def(
            "refresh",
            [](TrainedScene& scene, const In& s, int threads) {
                s.check(scene.count);
                hush::GilReleased release;
                std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
                scene.refresh(s.means.data(), s.scales.data(), s.rotations.data(), s.opacities.data(), threads);
            },
            "surfels"_a, "threads"_a)
        .def(
            "draw",
            [](TrainedScene& scene, const hush::Camera& camera, const In& surfels,
               Array<const float, nb::shape<3>> background, int threads, Drawn<float>& drawing,
               hush::FragmentTape* tape, float stop) {
                surfels.check(scene.count);
                drawing.check(camera);
                hush::SortedOutput out = output_of(drawing, background);
                out.tape = tape, out.stop = stop;
                hush::GilReleased release;
                std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
                hush::TileLists lists;
                hush::begin_frame(scene, camera, lists);
                if (tape) tape->scene = 0;  // until all of it is drawn
                (tape ? hush::kernels().exact : hush::kernels().sorted)(scene, camera, lists, surfels.colors(), threads,
                                                                        out);
                if (tape) tape->scene = scene.serial, tape->width = camera.width, tape->height = camera.height;
            },
            "camera"_a, "surfels"_a, "background"_array, "threads"_a, "drawing"_a, "tape"_a.none(), "stop"_a,
            "Draw in per-pixel order if there is a tape to record on, else sorted.")
        .def(
            "gradient",
            [](TrainedScene& scene, const hush::Camera& camera, const In& surfels, int threads,
               const Drawn<const float>& drawn, const Drawn<const float>& by_drawn, const hush::FragmentTape* tape,
               Out& gradients, Rows<float, 2> by_center, Array<uint8_t, nb::shape<-1>> seen) {
                surfels.check(scene.count);
                const hush::GradientJob job = job_of(camera, surfels, drawn, by_drawn, gradients, by_center, seen);
                hush::GilReleased release;
                std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
                if (tape) {
                    require(tape->scene == scene.serial, "the tape is of another scene, or of none");
                    require(tape->width == camera.width && tape->height == camera.height,
                            "the tape is of a picture of another size");
                }
                hush::TileLists lists;
                hush::begin_frame(scene, camera, lists);
                if (!tape) return hush::kernels().sorted_gradient(scene, camera, lists, surfels.colors(), threads, job);
                hush::kernels().exact_gradient(scene, camera, lists, surfels.colors(), threads, *tape, job);
            },
            "camera"_a, "surfels"_a, "threads"_a, "drawn"_a, "by_drawn"_a, "tape"_a.none(), "gradients"_a,
            "by_center"_array, "seen"_array,
            "Add to the gradients; what was drawn must have been drawn with this camera and these surfels.");

    using Table = Array<float, nb::shape<-1, -1>>;
    m.def(
        "adam",
        [](Table values, Array<const float, nb::shape<-1, -1>> gradient, Table first, Table second,
           Array<const float, nb::shape<-1>> sizes, float beta1, float beta2, float second_scale, float epsilon,
           int threads) {
            const size_t rows = values.shape(0), columns = values.shape(1), trained = gradient.shape(1);
            for (const Table& table : {first, second})
                require(table.shape(0) == rows && table.shape(1) == columns,
                        "moments have another shape than the values");
            hush::require_count(rows);
            require(columns <= 0x7fffffffu, "too many columns");
            require(gradient.shape(0) == rows && trained <= columns && sizes.shape(0) == trained,
                    "the gradient does not fit");
            const hush::AdamStep step{(int)rows,       (int)columns, (int)trained,  values.data(),
                                      gradient.data(), first.data(), second.data(), sizes.data(),
                                      beta1,           beta2,        second_scale,  epsilon};
            hush::GilReleased release;
            hush::kernels().adam(step, threads);
        },
        "values"_array, "gradient"_array, "first"_array, "second"_array, "sizes"_array, "beta1"_a, "beta2"_a,
        "second_scale"_a, "epsilon"_a, "threads"_a);

    m.def(
        "ssim",
        [](Picture<const float> first, Picture<const float> second, int threads, Picture<float> by_first) {
            const size_t h = first.shape(0), w = first.shape(1);
            hush::require_picture_size(h, w);
            for (size_t axis = 0; axis < 2; ++axis)
                require(second.shape(axis) == first.shape(axis) && by_first.shape(axis) == first.shape(axis),
                        "pictures differ in size");
            require(first.shape(2) == 3 && second.shape(2) == 3 && by_first.shape(2) == 3,
                    "pictures must have three channels");
            hush::GilReleased release;
            return hush::kernels().ssim(first.data(), second.data(), (int)w, (int)h, threads, by_first.data());
        },
        "first"_array, "second"_array, "threads"_a, "by_first"_array,
        "Mean similarity; its gradient by the first picture goes to by_first.");
}
