// Numpy arrays in recycled memory.
#include <memory>
#include <vector>

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include "interpreter.h"
#include "recycle.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace {

template <class T>
nb::ndarray<nb::numpy, T> empty(const std::vector<size_t>& shape) {
    size_t count = 1;
    for (size_t side : shape) {
        if (side && count > (size_t(1) << 40) / side) throw nb::value_error("an array of that shape is too large");
        count *= side;
    }
    auto held = std::make_unique<hush::Recycled>(count * sizeof(T) + 64);
    void* memory = held->get();
    nb::capsule owner(held.release(), [](void* p) noexcept { delete static_cast<hush::Recycled*>(p); });
    return nb::ndarray<nb::numpy, T>(memory, shape.size(), shape.data(), owner);
}

}  // namespace

void bind_recycled(nb::module_& m) {
    m.def("empty_float32", &empty<float>, "shape"_a,
          "An uninitialised array whose memory is used again once nobody holds it.");
    m.def("empty_int32", &empty<int32_t>, "shape"_a, "The same for 32-bit integers.");
    m.def("release_memory", &hush::release_waiting, nb::call_guard<hush::GilReleased>(),
          "Give memory that waits for its next use back to the system.");
}
