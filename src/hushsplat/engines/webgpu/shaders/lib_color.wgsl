// Colour of a Gaussian by spherical harmonics of degree 0 to 3, with the signs and the order of types/harmonics.py.
// Whoever includes this binds `view`, `page`, `fixed` and `sh`.
//!include lib_gaussian

const UNIT_STEPS: f32 = 8.0;  // as packing.py
const UNIT_BIAS: f32 = 160.0;

fn sh_byte(first: u32, number: u32) -> u32 {
    return (sh[first + number / 4u] >> (8u * (number % 4u))) & 0xffu;
}

fn sh_vector(first: u32, coefficient: u32) -> vec3f {
    if (!COMPACT) {
        let at = first + 3u * coefficient;
        return bitcast<vec3f>(vec3u(sh[at], sh[at + 1u], sh[at + 2u]));
    }
    if (coefficient == 0u) {
        return vec3f(unpack2x16float(sh[first]), unpack2x16float(sh[first + 1u]).x);
    }
    let at = 7u + 3u * (coefficient - 1u);
    let bytes = vec3u(sh_byte(first, at), sh_byte(first, at + 1u), sh_byte(first, at + 2u));
    return vec3f(bitcast<vec3i>(bytes << vec3u(24u)) >> vec3u(24u));  // in units of the Gaussian
}

fn color_of(index: u32) -> vec3f {
    let at = page.color_words * index;
    var color = vec3f(0.5) + 0.28209479177387814 * sh_vector(at, 0u);
    var higher = vec3f(0.0);
    if (page.coefficients >= 4u) {
        let toward = mean_of(index) - vec3f(view.eye_x, view.eye_y, view.eye_z);
        let d = toward / max(length(toward), 1e-12);
        higher += 0.4886025119029199 * (-d.y * sh_vector(at, 1u) + d.z * sh_vector(at, 2u) - d.x * sh_vector(at, 3u));
        let xx = d.x * d.x;
        let yy = d.y * d.y;
        let zz = d.z * d.z;
        if (page.coefficients >= 9u) {
            higher += 1.0925484305920792 * d.x * d.y * sh_vector(at, 4u)
                - 1.0925484305920792 * d.y * d.z * sh_vector(at, 5u)
                + 0.31539156525252005 * (2.0 * zz - xx - yy) * sh_vector(at, 6u)
                - 1.0925484305920792 * d.x * d.z * sh_vector(at, 7u)
                + 0.5462742152960396 * (xx - yy) * sh_vector(at, 8u);
        }
        if (page.coefficients >= 16u) {
            higher += -0.5900435899266435 * d.y * (3.0 * xx - yy) * sh_vector(at, 9u)
                + 2.890611442640554 * d.x * d.y * d.z * sh_vector(at, 10u)
                - 0.4570457994644658 * d.y * (4.0 * zz - xx - yy) * sh_vector(at, 11u)
                + 0.3731763325901154 * d.z * (2.0 * zz - 3.0 * xx - 3.0 * yy) * sh_vector(at, 12u)
                - 0.4570457994644658 * d.x * (4.0 * zz - xx - yy) * sh_vector(at, 13u)
                + 1.445305721320277 * d.z * (xx - yy) * sh_vector(at, 14u)
                - 0.5900435899266435 * d.x * (xx - 3.0 * yy) * sh_vector(at, 15u);
        }
        if (COMPACT) {
            higher *= exp2((f32(sh_byte(at, 6u)) - UNIT_BIAS) / UNIT_STEPS);
        }
        color += higher;
    }
    return max(color, vec3f(0.0));
}
