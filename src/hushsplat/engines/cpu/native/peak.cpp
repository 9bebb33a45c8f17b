// What this machine can do at most: multiply-adds, and bytes to and from memory. Nothing here is useful but the time it
// takes.
#include <chrono>

#include "kernels.h"
#include "recycle.h"
#include "threads.h"

namespace hush::HUSH_ISA {
namespace {

#if defined(__AVX2__)
constexpr int kChains = 12;  // more than a multiply-add takes to finish, times two units; and they fit the registers
#else
constexpr int kChains = 6;
#endif

template <class Work>
double fastest_seconds(int repeats, Work&& work) {
    double best = 1e30;
    for (int k = 0; k < repeats; ++k) {
        const auto start = std::chrono::steady_clock::now();
        work();
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        best = seconds < best ? seconds : best;
    }
    return best;
}

}  // namespace

double peak_flops(int threads) {
    constexpr int kRounds = 100000, kJobsPerThread = 8;
    const int jobs = kJobsPerThread * thread_count(threads);
    const double seconds = fastest_seconds(5, [&] {
        parallel_for(jobs, threads, [](int job) {
            f32x8 sum[kChains];
            for (int k = 0; k < kChains; ++k) sum[k] = splat((float)(job + k));
            const f32x8 a = splat(0.999f), b = splat(0.001f);
            for (int round = 0; round < kRounds; ++round)
                for (int k = 0; k < kChains; ++k) sum[k] = fma(sum[k], a, b);
            f32x8 total = sum[0];
            for (int k = 1; k < kChains; ++k) total = total + sum[k];
            volatile float kept = total[0];  // or the compiler would leave all of it out
            (void)kept;
        });
    });
    return 2.0 * 8 * kChains * kRounds * jobs / seconds;
}

double peak_bytes(int threads) {
    constexpr size_t kFloats = size_t(24) << 20, kJobs = 64;  // 100 MB each, more than caches hold
    Recycled from(kFloats * sizeof(float)), to(kFloats * sizeof(float));
    float *in = static_cast<float*>(from.get()), *out = static_cast<float*>(to.get());
    std::memset(in, 0, kFloats * sizeof(float));
    const double seconds = fastest_seconds(5, [&] {
        parallel_for((int)kJobs, threads, [&](int job) {
            const size_t begin = kFloats / kJobs * job;
            for (size_t k = begin; k < begin + kFloats / kJobs; k += 8) stream(out + k, load(in + k), true);
        });
    });
    return 2.0 * kFloats * sizeof(float) / seconds;
}

}  // namespace hush::HUSH_ISA
