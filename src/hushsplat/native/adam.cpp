// One step of Adam, in place; the corrections of both moments come with the step size and with `second_scale`.
#include "kernels.h"
#include "threads.h"

namespace hush::HUSH_ISA {

void adam(const AdamStep& s, int threads) {
    constexpr size_t kBlock = 1 << 15;
    parallel_for((int)((s.count + kBlock - 1) / kBlock), threads, [&](int job) {
        const size_t end = (job + 1) * kBlock < s.count ? (job + 1) * kBlock : s.count;
        const AdamStep step = s;
        for (size_t k = job * kBlock; k < end; ++k) {
            const float g = step.gradient[k];
            const float first = step.beta1 * step.first[k] + (1 - step.beta1) * g;
            const float second = step.beta2 * step.second[k] + (1 - step.beta2) * g * g;
            step.first[k] = first;
            step.second[k] = second;
            step.values[k] -= step.size * first / (__builtin_sqrtf(second) * step.second_scale + step.epsilon);
        }
    });
}

}  // namespace hush::HUSH_ISA
