// The Python side of the engine: arrays in, arrays out, the interpreter's lock released while it works.
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

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

using Means = Array<const float, nb::shape<-1, 3>>;
using Vector3 = Array<const float, nb::shape<3>>;

hush::Camera camera_of(const Array<const float, nb::shape<3, 3>>& rotation, const Vector3& eye,
                       const Array<const float, nb::shape<4>>& intrinsics, int width, int height, float near) {
    hush::Camera camera;
    for (int k = 0; k < 9; ++k) camera.rotation[k] = rotation.data()[k];
    for (int k = 0; k < 3; ++k) camera.eye[k] = eye.data()[k];
    camera.fx = intrinsics(0), camera.fy = intrinsics(1), camera.cx = intrinsics(2), camera.cy = intrinsics(3);
    camera.width = width, camera.height = height, camera.near = near;
    return camera;
}

hush::Colors colors_of(const Array<const float, nb::shape<-1, -1, 3>>& sh, const Means& means, size_t count) {
    size_t k = sh.shape(1);
    require(sh.shape(0) == count && means.shape(0) == count, "sh and means must be the scene's");
    require(k == 1 || k == 4 || k == 9 || k == 16, "sh must have 1, 4, 9 or 16 coefficients");
    hush::require_count(count);
    return {sh.data(), (int)k, means.data(), (int)count};
}

void require_samples(size_t samples) {
    require(samples >= 1 && samples <= 0x7fffffffu, "a frame has at least one sample per pixel");
}

using Pixels = Array<float, nb::shape<-1, -1>>;
using Pixels3 = Array<float, nb::shape<-1, -1, 3>>;

void require_picture(const hush::Camera& camera, size_t height, size_t width) {
    require(height == (size_t)camera.height && width == (size_t)camera.width, "an output has not the camera's size");
}

hush::SortedOutput output_of(const hush::Camera& camera, Pixels3& color, Pixels& alpha, std::optional<Pixels>& depth,
                             std::optional<Pixels3>* variance, const Vector3& background) {
    require_picture(camera, color.shape(0), color.shape(1));
    require_picture(camera, alpha.shape(0), alpha.shape(1));
    if (depth) require_picture(camera, depth->shape(0), depth->shape(1));
    hush::SortedOutput out{color.data(), alpha.data(), depth ? depth->data() : nullptr, nullptr, {}};
    if (variance && *variance) {
        require_picture(camera, (*variance)->shape(0), (*variance)->shape(1));
        out.variance = (*variance)->data();
    }
    for (int c = 0; c < 3; ++c) out.background[c] = background(c);
    return out;
}

}  // namespace

void bind_active_set(nb::module_& m);
void bind_baselines(nb::module_& m);
void bind_denoise(nb::module_& m);
void bind_gradient(nb::module_& m);
void bind_recycled(nb::module_& m);
void bind_spec(nb::module_& m);

NB_MODULE(_engine, m) {
    nb::set_leak_warnings(false);  // graphs of PyTorch that live until the process ends hold on to our objects
    hush::wait_at_exit();
    m.doc() = "The CPU engine of hushsplat: see the Python modules of the same names for what each pass means.";
    nb::exception<hush::Cancelled>(m, "Cancelled");
    struct Cancel {
        std::atomic<bool> flag{false};
        std::optional<hush::CancelledBy> scope;
    };
    nb::class_<Cancel>(m, "Cancel", "In a with block, work of this thread ends early with Cancelled once it is set.")
        .def(nb::init<>())
        .def("set", [](Cancel& self) { self.flag = true; })
        .def("__enter__", [](Cancel& self) { self.scope.emplace(&self.flag); })
        .def("__exit__", [](Cancel& self, nb::args) { self.scope.reset(); });
    nb::class_<hush::Camera>(m, "Camera")
        .def(
            "__init__",
            [](hush::Camera* self, Array<const float, nb::shape<3, 3>> rotation, Vector3 eye,
               Array<const float, nb::shape<4>> intrinsics, int width, int height, float near) {
                hush::require_picture_size((size_t)height, (size_t)width);
                new (self) hush::Camera(camera_of(rotation, eye, intrinsics, width, height, near));
            },
            "rotation"_array, "eye"_array, "intrinsics"_array, "width"_a, "height"_a, "near"_a);

    nb::class_<hush::Scene>(m, "Scene")
        .def(
            "__init__",
            [](hush::Scene* self, Means means, Array<const float, nb::shape<-1, -1>> scales,
               Array<const float, nb::shape<-1, 4>> rotations, Array<const float, nb::shape<-1>> opacities, int threads,
               std::optional<Array<const int32_t, nb::shape<-1>>> group) {
                size_t n = means.shape(0);
                hush::require_count(n);
                require(scales.shape(0) == n && rotations.shape(0) == n && opacities.shape(0) == n,
                        "arrays differ in length");
                require(scales.shape(1) == 2 || scales.shape(1) == 3, "scales must have 2 or 3 columns");
                bool surfels = scales.shape(1) == 2;
                require(!group || group->shape(0) == n, "arrays differ in length");
                for (size_t k = 0; group && k < n; ++k) require(group->data()[k] >= 0, "a group is below 0");
                hush::GilReleased release;
                new (self) hush::Scene(means.data(), scales.data(), rotations.data(), opacities.data(), (int)n, surfels,
                                       threads, false, group ? group->data() : nullptr);
            },
            "means"_array, "scales"_array, "rotations"_array, "opacities"_array, "threads"_a,
            "group"_array.none() = nb::none())
        .def_ro("count", &hush::Scene::count)
        .def_rw("antialiased", &hush::Scene::antialiased)
        .def_prop_ro("bytes", &hush::Scene::bytes)
        .def_ro("groups", &hush::Scene::groups)
        .def(
            "stochastic",
            [](hush::Scene& scene, const hush::Camera& camera, Array<const float, nb::shape<-1, hush::kTable>> levels,
               Array<const uint32_t, nb::shape<-1>> sequence, bool by_center, int threads,
               Array<int32_t, nb::shape<-1, -1, -1>> id, Array<float, nb::shape<-1, -1, -1>> depth,
               std::optional<hush::Groups> shown) {
                size_t samples = sequence.shape(0);
                require_samples(samples);
                require(levels.shape(0) == samples && id.shape(0) == samples && depth.shape(0) == samples,
                        "one table per sample");
                require_picture(camera, id.shape(1), id.shape(2));
                require_picture(camera, depth.shape(1), depth.shape(2));
                hush::GilReleased release;
                std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
                hush::TileLists lists;
                hush::begin_frame(scene, camera, lists, hush::shown_of(scene, shown));
                hush::kernels().stochastic(scene, camera, lists, levels.data(), sequence.data(), (int)samples,
                                           by_center ? hush::Order::center : hush::Order::pixel, threads, id.data(),
                                           depth.data());
            },
            "camera"_a, "levels"_array, "sequence"_array, "by_center"_a, "threads"_a, "id"_array, "depth"_array,
            "shown"_array.none() = nb::none())
        .def(
            "sorted",
            [](hush::Scene& scene, const hush::Camera& camera, Array<const float, nb::shape<-1, -1, 3>> sh, Means means,
               Vector3 background, int threads, Pixels3 color, Pixels alpha, std::optional<Pixels> depth,
               std::optional<hush::Groups> shown) {
                hush::Colors colors = colors_of(sh, means, scene.count);
                hush::SortedOutput out = output_of(camera, color, alpha, depth, nullptr, background);
                hush::GilReleased release;
                std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
                hush::TileLists lists;
                hush::begin_frame(scene, camera, lists, hush::shown_of(scene, shown));
                hush::kernels().sorted(scene, camera, lists, colors, threads, out);
            },
            "camera"_a, "sh"_array, "means"_array, "background"_array, "threads"_a, "color"_array, "alpha"_array,
            "depth"_array.none(), "shown"_array.none() = nb::none())
        .def(
            "exact",
            [](hush::Scene& scene, const hush::Camera& camera, Array<const float, nb::shape<-1, -1, 3>> sh, Means means,
               Vector3 background, int threads, Pixels3 color, Pixels alpha, std::optional<Pixels> depth,
               std::optional<Pixels3> variance, std::optional<hush::Groups> shown) {
                hush::Colors colors = colors_of(sh, means, scene.count);
                hush::SortedOutput out = output_of(camera, color, alpha, depth, &variance, background);
                hush::GilReleased release;
                std::lock_guard<hush::FrameLock> lock(scene.frame_mutex);
                hush::TileLists lists;
                hush::begin_frame(scene, camera, lists, hush::shown_of(scene, shown));
                hush::kernels().exact(scene, camera, lists, colors, threads, out);
            },
            "camera"_a, "sh"_array, "means"_array, "background"_array, "threads"_a, "color"_array, "alpha"_array,
            "depth"_array.none(), "variance"_array.none(), "shown"_array.none() = nb::none());

    m.def(
        "decode",
        [](Array<const int32_t, nb::shape<-1, -1, -1>> id, const hush::Camera& camera,
           Array<const float, nb::shape<-1, -1, 3>> sh, Means means, Vector3 background, int threads, Pixels3 color) {
            hush::Colors colors = colors_of(sh, means, sh.shape(0));
            require_samples(id.shape(0));
            require_picture(camera, id.shape(1), id.shape(2));
            require_picture(camera, color.shape(0), color.shape(1));
            hush::GilReleased release;
            hush::kernels().decode(id.data(), (int)id.shape(0), camera.width, camera.height, camera, colors, threads,
                                   background.data(), color.data());
        },
        "id"_array, "camera"_a, "sh"_array, "means"_array, "background"_array, "threads"_a, "color"_array);
    m.def(
        "decode_view",
        [](Array<const int32_t, nb::shape<-1, -1, -1>> id, Array<const float, nb::shape<-1, -1, -1>> depth,
           Array<const float, nb::shape<-1, 10>> payload, Array<const float, nb::shape<3, 3>> axes, int threads,
           Array<float, nb::shape<-1, -1, 4>> view) {
            require_samples(id.shape(0));
            hush::require_picture_size(id.shape(1), id.shape(2));
            hush::require_count(payload.shape(0));
            for (int k = 0; k < 3; ++k) require(depth.shape(k) == id.shape(k), "depth has not the shape of the ids");
            require(view.shape(0) == id.shape(1) && view.shape(1) == id.shape(2),
                    "the view has not the size of the ids");
            hush::GilReleased release;
            hush::kernels().decode_view(id.data(), depth.data(), (int)id.shape(0), (int)id.shape(2), (int)id.shape(1),
                                        payload.data(), (int)payload.shape(0), axes.data(), threads, view.data());
        },
        "id"_array, "depth"_array, "payload"_array, "axes"_array, "threads"_a, "view"_array);

    m.def(
        "require_finite",
        [](Array<const float> values, const std::string& name, int threads) {
            hush::GilReleased release;
            hush::require_finite(values.data(), values.size(), name.c_str(), threads);
        },
        "values"_array, "name"_a, "threads"_a, "Raise a ValueError that has this name if a value is NaN or infinite.");

    bind_spec(m);
    bind_active_set(m);
    bind_denoise(m);
    bind_gradient(m);
    bind_baselines(m);
    bind_recycled(m);
    m.def(
        "peak_flops", [](int threads) { return hush::kernels().peak_flops(threads); }, "threads"_a,
        nb::call_guard<hush::GilReleased>(), "Multiplications and additions per second, at most.");
    m.def(
        "peak_bytes", [](int threads) { return hush::kernels().peak_bytes(threads); }, "threads"_a,
        nb::call_guard<hush::GilReleased>(), "Bytes per second from and to memory, at most.");
    m.def("default_threads", &hush::default_threads);
    m.def(
        "instruction_sets",
        [] {
            std::vector<std::string> names;
            for (const char* name : hush::available_kernels()) names.push_back(name);
            return names;
        },
        "What this machine can run, best first.");
    m.def("instruction_set", [] { return std::string(hush::kernels().name); }, "What is in use.");
    m.def("choose_instruction_set", [](const std::string& name) {
        if (!hush::choose_kernels(name.c_str()))
            throw nb::value_error(("this machine cannot run '" + name + "'").c_str());
    });
}
