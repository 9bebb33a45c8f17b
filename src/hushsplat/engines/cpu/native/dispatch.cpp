// Chooses the build of the passes that this machine can run.
#include <cstring>

#include "engine.h"

namespace hush {

extern const Kernels kernels_portable;
#if defined(HUSH_X86)
extern const Kernels kernels_avx2;
#endif

namespace {

std::vector<const Kernels*> runnable() {  // best first
    std::vector<const Kernels*> found;
#if defined(HUSH_X86)
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&kernels_avx2);
#endif
    found.push_back(&kernels_portable);
    return found;
}

std::atomic<const Kernels*>& chosen() {
    static std::atomic<const Kernels*> kernels{runnable().front()};
    return kernels;
}

}  // namespace

const Kernels& kernels() { return *chosen(); }

bool choose_kernels(const char* name) {
    for (const Kernels* k : runnable())
        if (!std::strcmp(k->name, name)) {
            chosen() = k;
            return true;
        }
    return false;
}

std::vector<const char*> available_kernels() {
    std::vector<const char*> names;
    for (const Kernels* k : runnable()) names.push_back(k->name);
    return names;
}

}  // namespace hush
