// The Python side of the baselines.
#include <optional>

#include <nanobind/stl/optional.h>

#include "arrays.h"
#include "baselines.h"
#include "engine.h"
#include "interpreter.h"

namespace nb = nanobind;
using namespace nb::literals;
using hush::Array;
using hush::operator""_array;

namespace {

using Pixels = Array<const float, nb::shape<-1, -1>>;
using Colors = Array<const float, nb::shape<-1, -1, 3>>;
using Shown = Array<float, nb::shape<-1, -1, 3>>;
using Before = std::optional<Array<const float, nb::shape<-1, -1, hush::kHistoryFloats>>>;
using After = Array<float, nb::shape<-1, -1, hush::kHistoryFloats>>;
using Lens = Array<const float, nb::shape<4>>;

template <class T>
void require_size(const hush::BaselineStep& step, const T& array) {
    hush::require_size(array, step.height, step.width, "an array has not the size of the observation");
}

template <class Previous, class History>
hush::BaselineStep step_of(const Colors& color, const Pixels& depth, const std::optional<Previous>& previous,
                           const hush::CameraMotion& motion, float far, int threads, History& history, Shown& shown) {
    hush::require_picture_size(color.shape(0), color.shape(1));
    hush::BaselineStep step{};
    step.height = (int)color.shape(0);
    step.width = (int)color.shape(1);
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
            "is_static"_a, "lens"_array, "other_lens"_array, "change"_array);
    m.def(
        "baseline_mean",
        [](Colors color, Pixels depth, std::optional<Colors> previous, int frames, int threads, Shown history,
           Shown shown) {
            if (frames < 1) throw nb::value_error("a mean has at least one frame");
            hush::BaselineStep step = step_of(color, depth, previous, {}, 0, threads, history, shown);
            hush::GilReleased release;
            hush::kernels().baseline_mean(step, frames);
        },
        "color"_array, "depth"_array, "previous"_array.none(), "frames"_a, "threads"_a, "history"_array, "shown"_array);
    m.def(
        "baseline_st_taa",
        [](Colors color, Pixels depth, Before previous, const hush::CameraMotion& motion,
           const hush::StTaaSettings& settings, int threads, After history, Shown shown) {
            hush::BaselineStep step =
                step_of(color, depth, previous, motion, settings.far_depth, threads, history, shown);
            hush::GilReleased release;
            hush::kernels().baseline_st_taa(step, settings.cap_frames, settings.reach);
        },
        "color"_array, "depth"_array, "previous"_array.none(), "motion"_a, "settings"_a, "threads"_a, "history"_array,
        "shown"_array);
    m.def(
        "baseline_taa",
        [](Colors color, Pixels depth, Before previous, const hush::CameraMotion& motion,
           const hush::TaaSettings& settings, int threads, After history, Shown shown) {
            hush::BaselineStep step =
                step_of(color, depth, previous, motion, settings.far_depth, threads, history, shown);
            hush::GilReleased release;
            hush::kernels().baseline_taa(step, settings.cap_frames, settings.gamma);
        },
        "color"_array, "depth"_array, "previous"_array.none(), "motion"_a, "settings"_a, "threads"_a, "history"_array,
        "shown"_array);
    m.def(
        "baseline_svgf",
        [](Colors color, Pixels depth, Before previous, const hush::CameraMotion& motion,
           const hush::SvgfSettings& settings, int threads, After history, Shown shown) {
            hush::BaselineStep step =
                step_of(color, depth, previous, motion, settings.far_depth, threads, history, shown);
            hush::GilReleased release;
            hush::kernels().baseline_svgf(step, settings);
        },
        "color"_array, "depth"_array, "previous"_array.none(), "motion"_a, "settings"_a, "threads"_a, "history"_array,
        "shown"_array);
}
