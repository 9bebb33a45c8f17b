// The table of this instruction set's passes.
#include "kernels.h"

namespace hush {

#define HUSH_TEXT2(x) #x
#define HUSH_TEXT(x) HUSH_TEXT2(x)
#define HUSH_JOIN2(a, b) a##b
#define HUSH_JOIN(a, b) HUSH_JOIN2(a, b)

extern const Kernels HUSH_JOIN(kernels_, HUSH_ISA);
const Kernels HUSH_JOIN(kernels_, HUSH_ISA) = {
    HUSH_TEXT(HUSH_ISA),    HUSH_ISA::project,         HUSH_ISA::stochastic,     HUSH_ISA::sorted,
    HUSH_ISA::exact,        HUSH_ISA::sorted_gradient, HUSH_ISA::exact_gradient, HUSH_ISA::ssim,
    HUSH_ISA::adam,         HUSH_ISA::decode,          HUSH_ISA::decode_view,    HUSH_ISA::peak_flops,
    HUSH_ISA::peak_bytes,   HUSH_ISA::denoise,         HUSH_ISA::baseline_mean,  HUSH_ISA::baseline_st_taa,
    HUSH_ISA::baseline_taa, HUSH_ISA::baseline_svgf,   HUSH_ISA::active_set,
};

}  // namespace hush
