// Colour of a Gaussian seen from the eye: 0.5 + basis · sh, clamped at 0 from below; as types/harmonics.py.
#pragma once

#include "kernels.h"

namespace hush::HUSH_ISA {

HUSH_INLINE int basis_at(const float* mean, const float* eye, int coefficients, float* b) {
    b[0] = 0.28209479177387814f;
    if (coefficients == 1) return 1;
    float x = mean[0] - eye[0], y = mean[1] - eye[1], z = mean[2] - eye[2];
    float scale = 1 / __builtin_sqrtf(x * x + y * y + z * z + 1e-24f);
    x *= scale, y *= scale, z *= scale;
    b[1] = -0.4886025119029199f * y;
    b[2] = 0.4886025119029199f * z;
    b[3] = -0.4886025119029199f * x;
    if (coefficients == 4) return 4;
    float xx = x * x, yy = y * y, zz = z * z;
    b[4] = 1.0925484305920792f * x * y;
    b[5] = -1.0925484305920792f * y * z;
    b[6] = 0.31539156525252005f * (2 * zz - xx - yy);
    b[7] = -1.0925484305920792f * x * z;
    b[8] = 0.5462742152960396f * (xx - yy);
    if (coefficients == 9) return 9;
    b[9] = -0.5900435899266435f * y * (3 * xx - yy);
    b[10] = 2.890611442640554f * x * y * z;
    b[11] = -0.4570457994644658f * y * (4 * zz - xx - yy);
    b[12] = 0.3731763325901154f * z * (2 * zz - 3 * xx - 3 * yy);
    b[13] = -0.4570457994644658f * x * (4 * zz - xx - yy);
    b[14] = 1.445305721320277f * z * (xx - yy);
    b[15] = -0.5900435899266435f * x * (xx - 3 * yy);
    return 16;
}

// Σ along[k] · gradient of basis value k by the unit direction (x, y, z), the values taken as polynomials of it.
HUSH_INLINE void basis_gradient(float x, float y, float z, int coefficients, const float* along, float out[3]) {
    const float c1 = 0.4886025119029199f;
    out[0] = -c1 * along[3], out[1] = -c1 * along[1], out[2] = c1 * along[2];
    if (coefficients < 9) return;
    const float a4 = 1.0925484305920792f * along[4], a5 = -1.0925484305920792f * along[5];
    const float a6 = 0.31539156525252005f * along[6], a7 = -1.0925484305920792f * along[7];
    const float a8 = 0.5462742152960396f * along[8];
    out[0] += a4 * y - 2 * a6 * x + a7 * z + 2 * a8 * x;
    out[1] += a4 * x + a5 * z - 2 * a6 * y - 2 * a8 * y;
    out[2] += a5 * y + 4 * a6 * z + a7 * x;
    if (coefficients < 16) return;
    const float xx = x * x, yy = y * y, zz = z * z;
    const float a9 = -0.5900435899266435f * along[9], a10 = 2.890611442640554f * along[10];
    const float a11 = -0.4570457994644658f * along[11], a12 = 0.3731763325901154f * along[12];
    const float a13 = -0.4570457994644658f * along[13], a14 = 1.445305721320277f * along[14];
    const float a15 = -0.5900435899266435f * along[15];
    out[0] += 6 * a9 * x * y + a10 * y * z - 2 * a11 * x * y - 6 * a12 * x * z + a13 * (4 * zz - 3 * xx - yy) +
              2 * a14 * x * z + 3 * a15 * (xx - yy);
    out[1] += 3 * a9 * (xx - yy) + a10 * x * z + a11 * (4 * zz - xx - 3 * yy) - 6 * a12 * y * z - 2 * a13 * x * y -
              2 * a14 * y * z - 6 * a15 * x * y;
    out[2] += a10 * x * y + 8 * a11 * y * z + 3 * a12 * (2 * zz - xx - yy) + 8 * a13 * x * z + a14 * (xx - yy);
}

HUSH_INLINE void prefetch_harmonics(const Colors& colors, int32_t id) {
    const size_t floats = (size_t)3 * colors.coefficients;
    const char* begin = reinterpret_cast<const char*>(colors.sh + (size_t)id * floats);
    for (size_t byte = 0; byte < floats * sizeof(float); byte += 64) __builtin_prefetch(begin + byte);
    __builtin_prefetch(begin + floats * sizeof(float) - 1);
}

HUSH_INLINE void prefetch_color(const Colors& colors, int32_t id) {
    prefetch_harmonics(colors, id);
    if (colors.coefficients > 1) __builtin_prefetch(colors.means + 3 * (size_t)id);
}

// RGB in the first three lanes, of a Gaussian whose mean is at hand.
HUSH_INLINE f32x4 color_at(const Colors& colors, const float* mean, const float* eye, int32_t id) {
    float b[16];
    const int n = basis_at(mean, eye, colors.coefficients, b);
    const float* sh = colors.sh + 3 * (size_t)id * n;
    f32x4 sum = {0.5f, 0.5f, 0.5f, 0};
    for (int k = 0; k + 1 < n; ++k) {  // a load of four runs one float into the next coefficient
        f32x4 c;
        std::memcpy(&c, sh + 3 * k, 16);
        sum += c * b[k];
    }
    f32x4 last = {sh[3 * n - 3], sh[3 * n - 2], sh[3 * n - 1], 0};
    sum += last * b[n - 1];
    f32x4 zero = {0, 0, 0, 0};
    return sum > zero ? sum : zero;
}

HUSH_INLINE f32x4 color_of(const Colors& colors, const float* eye, int32_t id) {
    return color_at(colors, colors.means + 3 * (size_t)id, eye, id);
}

}  // namespace hush::HUSH_ISA
