// One step of Adam, in place; the corrections of both moments come with the step sizes and with `second_scale`.
#include "kernels.h"
#include "threads.h"

namespace hush::HUSH_ISA {

void adam(const AdamStep& step, int threads) {
    constexpr int kRows = 2048;
    parallel_for((step.rows + kRows - 1) / kRows, threads, [&](int job) {
        const AdamStep s = step;
        const int end = (job + 1) * kRows < s.rows ? (job + 1) * kRows : s.rows;
        for (int row = job * kRows; row < end; ++row) {
            const size_t at = (size_t)row * s.columns;
            const float* gradient = s.gradient + (size_t)row * s.trained;
            for (int c = 0; c < s.trained; ++c) {
                const float g = gradient[c];
                const float first = s.beta1 * s.first[at + c] + (1 - s.beta1) * g;
                const float second = s.beta2 * s.second[at + c] + (1 - s.beta2) * g * g;
                s.first[at + c] = first;
                s.second[at + c] = second;
                s.values[at + c] -= s.sizes[c] * first / (__builtin_sqrtf(second) * s.second_scale + s.epsilon);
            }
        }
    });
}

}  // namespace hush::HUSH_ISA
