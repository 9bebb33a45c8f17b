// The Python side of the baselines.
#include <optional>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include "baselines.h"
#include "engine.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T, class... Shape>
using Array = nb::ndarray<T, Shape..., nb::c_contig, nb::device::cpu>;
using Pixels = Array<const float, nb::shape<-1, -1>>;
using Colors = Array<const float, nb::shape<-1, -1, 3>>;
using Shown = Array<float, nb::shape<-1, -1, 3>>;
using Before = std::optional<Array<const float, nb::shape<-1, -1, hush::kHistoryFloats>>>;
using After = Array<float, nb::shape<-1, -1, hush::kHistoryFloats>>;
using Lens = Array<const float, nb::shape<4>>;

template <class T>
void require_size(const hush::BaselineStep& step, const T& array) {
    if ((int)array.shape(0) != step.height || (int)array.shape(1) != step.width)
        throw nb::value_error("an array has not the size of the observation");
}

template <class Previous, class History>
hush::BaselineStep step_of(const Colors& color, const Pixels& depth, const std::optional<Previous>& previous,
                           const hush::CameraMotion& motion, float far, int threads, History& history, Shown& shown) {
    hush::BaselineStep step{};
    step.height = (int)color.shape(0);
    step.width = (int)color.shape(1);
    if (step.height < 1 || step.width < 1 || step.height > 16384 || step.width > 16384)
        throw nb::value_error("a picture has 1 to 16384 px a side");
    require_size(step, depth);
    require_size(step, history);
    require_size(step, shown);
    if (previous) require_size(step, *previous);
    step.color = color.data();
    step.depth = depth.data();
    step.previous = previous ? previous->data() : nullptr;
    step.motion = motion;
    step.far = far;
    step.threads = threads;
    step.history = history.data();
    step.shown = shown.data();
    return step;
}

}  // namespace

void bind_baselines(nb::module_& m) {
    nb::class_<hush::CameraMotion>(m, "CameraMotion")
        .def(
            "__init__",
            [](hush::CameraMotion* self, bool is_static, Lens lens, Lens other_lens,
               Array<const float, nb::shape<3, 4>> change) {
                new (self) hush::CameraMotion{is_static,     lens(0),       lens(1),       lens(2),       lens(3),
                                              other_lens(0), other_lens(1), other_lens(2), other_lens(3), {}};
                for (int k = 0; k < 12; ++k) self->change[k] = change.data()[k];
            },
            "is_static"_a, "lens"_a, "other_lens"_a, "change"_a);
    m.def(
        "baseline_mean",
        [](Colors color, Pixels depth, std::optional<Colors> previous, int frames, int threads, Shown history,
           Shown shown) {
            if (frames < 1) throw nb::value_error("a mean has at least one frame");
            hush::BaselineStep step = step_of(color, depth, previous, {}, 0, threads, history, shown);
            nb::gil_scoped_release release;
            hush::kernels().baseline_mean(step, frames);
        },
        "color"_a, "depth"_a, "previous"_a.none(), "frames"_a, "threads"_a, "history"_a, "shown"_a);
    m.def(
        "baseline_st_taa",
        [](Colors color, Pixels depth, Before previous, const hush::CameraMotion& motion, const hush::StTaaSettings& settings, int threads, After history, Shown shown) {
            hush::BaselineStep step = step_of(color, depth, previous, motion, settings.far_depth, threads, history, shown);
            nb::gil_scoped_release release;
            hush::kernels().baseline_st_taa(step, settings.cap_frames, settings.reach);
        },
        "color"_a, "depth"_a, "previous"_a.none(), "motion"_a, "settings"_a, "threads"_a, "history"_a,
        "shown"_a);
    m.def(
        "baseline_taa",
        [](Colors color, Pixels depth, Before previous, const hush::CameraMotion& motion, const hush::TaaSettings& settings, int threads, After history, Shown shown) {
            hush::BaselineStep step = step_of(color, depth, previous, motion, settings.far_depth, threads, history, shown);
            nb::gil_scoped_release release;
            hush::kernels().baseline_taa(step, settings.cap_frames, settings.gamma);
        },
        "color"_a, "depth"_a, "previous"_a.none(), "motion"_a, "settings"_a, "threads"_a, "history"_a,
        "shown"_a);
    m.def(
        "baseline_svgf",
        [](Colors color, Pixels depth, Before previous, const hush::CameraMotion& motion,
           const hush::SvgfSettings& settings, int threads, After history, Shown shown) {
            hush::BaselineStep step = step_of(color, depth, previous, motion, settings.far_depth, threads, history, shown);
            nb::gil_scoped_release release;
            hush::kernels().baseline_svgf(step, settings);
        },
        "color"_a, "depth"_a, "previous"_a.none(), "motion"_a, "settings"_a, "threads"_a, "history"_a,
        "shown"_a);
}
