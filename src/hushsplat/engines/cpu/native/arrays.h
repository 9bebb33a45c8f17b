// How arrays come from Python: as they are, or not at all.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <optional>

#include "engine.h"

namespace hush {

template <class T, class... Shape>
using Array = nanobind::ndarray<T, Shape..., nanobind::c_contig, nanobind::device::cpu>;

// An argument that is never converted: what is written to a converted copy would be lost.
inline auto operator""_array(const char* name, size_t) { return nanobind::arg(name).noconvert(); }

inline void require(bool condition, const char* message) {
    if (!condition) throw nanobind::value_error(message);
}

constexpr size_t kMostSide = 16384;  // px: places in a picture are 16-bit integers in some passes

inline void require_picture_size(size_t height, size_t width) {
    require(width >= 1 && width <= kMostSide && height >= 1 && height <= kMostSide,
            "a picture has 1 to 16384 px a side");
}

// The first two axes of an array are the picture's.
template <class T>
void require_size(const T& array, int height, int width, const char* message) {
    require(array.shape(0) == (size_t)height && array.shape(1) == (size_t)width, message);
}

// Every slot of the scene has an int.
inline void require_count(size_t gaussians) { require(gaussians <= 0x7fffff00u, "too many Gaussians"); }

// Which groups of a scene are drawn.
using Groups = Array<const uint8_t, nanobind::shape<-1>>;

inline const uint8_t* shown_of(const Scene& scene, const std::optional<Groups>& shown) {
    if (!shown || !scene.chunks) return nullptr;
    require(scene.groups > 0 && shown->shape(0) >= (size_t)scene.groups, "shown has fewer entries than groups");
    return shown->data();
}

}  // namespace hush
