// The Python side of the denoiser's engine.
#include <cstring>
#include <optional>

#include <nanobind/stl/optional.h>

#include "arrays.h"
#include "denoise.h"
#include "engine.h"
#include "interpreter.h"

namespace nb = nanobind;
using namespace nb::literals;
using hush::Array;
using hush::operator""_array;

namespace {

template <class T>
void require_size(const hush::DenoiseStep& step, const T& array) {
    hush::require_size(array, step.height, step.width, "an array has not the size of the observation");
}

}  // namespace

void bind_denoise(nb::module_& m) {
    m.def(
        "denoise",
        [](Array<const float, nb::shape<-1, -1, 3>> color, Array<const float, nb::shape<-1, -1>> depth,
           std::optional<Array<const float, nb::shape<-1, -1, 4>>> neural_view,
           std::optional<Array<const float, nb::shape<-1, -1, hush::kStateFloats>>> previous, bool is_static,
           Array<const float, nb::shape<4>> intrinsics, Array<const float, nb::shape<4>> previous_intrinsics,
           Array<const float, nb::shape<3, 4>> motion, Array<const float, nb::shape<-1>> weights,
           const hush::DenoiserSettings& settings, int threads,
           Array<float, nb::shape<-1, -1, hush::kStateFloats>> state, Array<float, nb::shape<-1, -1, 3>> shown,
           std::optional<Array<float, nb::shape<-1, -1, hush::kViewFloats>>> views) {
            hush::require_picture_size(color.shape(0), color.shape(1));
            hush::DenoiseStep step{};
            step.height = (int)color.shape(0);
            step.width = (int)color.shape(1);
            require_size(step, depth);
            require_size(step, state);
            require_size(step, shown);
            if (neural_view) require_size(step, *neural_view);
            if (previous) require_size(step, *previous);
            if (views) require_size(step, *views);
            hush::DenoiserWeights packed;
            if (weights.shape(0) * sizeof(float) != sizeof packed)
                throw nb::value_error("weights have not DENOISER_FLOATS entries");
            std::memcpy(&packed, weights.data(), sizeof packed);
            step.color = color.data();
            step.depth = depth.data();
            step.neural_view = neural_view ? neural_view->data() : nullptr;
            step.previous = previous ? previous->data() : nullptr;
            step.is_static = is_static;
            step.fx = intrinsics(0), step.fy = intrinsics(1), step.cx = intrinsics(2), step.cy = intrinsics(3);
            step.previous_fx = previous_intrinsics(0), step.previous_fy = previous_intrinsics(1);
            step.previous_cx = previous_intrinsics(2), step.previous_cy = previous_intrinsics(3);
            std::memcpy(step.motion, motion.data(), sizeof step.motion);
            step.weights = &packed;
            step.settings = settings;
            step.state = state.data();
            step.shown = shown.data();
            step.views = views ? views->data() : nullptr;
            hush::GilReleased release;
            hush::kernels().denoise(step, threads);
        },
        "color"_array, "depth"_array, "neural_view"_array.none(), "previous"_array.none(), "is_static"_a,
        "intrinsics"_array, "previous_intrinsics"_array, "motion"_array, "weights"_array, "settings"_a, "threads"_a,
        "state"_array, "shown"_array, "views"_array.none());
}
