// The way back from fragments to surfels.
#pragma once

#include <vector>

#include "gradient.h"

namespace hush::HUSH_ISA {

// Adds what the tiles (or patches) found about each surfel to the gradients of `job`.
void chain_through_projection(const Scene& scene, const Camera& camera, const Colors& colors,
                              const std::vector<std::vector<PartialSums>>& found, int threads, const GradientJob& job);

}  // namespace hush::HUSH_ISA
