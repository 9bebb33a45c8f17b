// Colour of a Gaussian by spherical harmonics of degree 0 to 3, with the signs and the order of types/harmonics.py.
// Whoever includes this binds `view`, `page`, `fixed` and `sh`.

override HALVES: bool = true;  // how `sh` is stored: two coefficients a word, or one

fn sh_value(at: u32) -> f32 {
    if (HALVES) {
        let both = unpack2x16float(sh[at / 2u]);
        return select(both.x, both.y, (at & 1u) == 1u);
    }
    return bitcast<f32>(sh[at]);
}

fn sh_vector(first: u32, coefficient: u32) -> vec3f {
    let at = first + 3u * coefficient;
    return vec3f(sh_value(at), sh_value(at + 1u), sh_value(at + 2u));
}

fn color_of(index: u32) -> vec3f {
    let at = 3u * page.coefficients * index;
    var color = vec3f(0.5) + 0.28209479177387814 * sh_vector(at, 0u);
    if (page.coefficients >= 4u) {
        let toward = fixed_vector(FIXED * index) - vec3f(view.eye_x, view.eye_y, view.eye_z);
        let d = toward / max(length(toward), 1e-12);
        color += 0.4886025119029199 * (-d.y * sh_vector(at, 1u) + d.z * sh_vector(at, 2u) - d.x * sh_vector(at, 3u));
        let xx = d.x * d.x;
        let yy = d.y * d.y;
        let zz = d.z * d.z;
        if (page.coefficients >= 9u) {
            color += 1.0925484305920792 * d.x * d.y * sh_vector(at, 4u)
                - 1.0925484305920792 * d.y * d.z * sh_vector(at, 5u)
                + 0.31539156525252005 * (2.0 * zz - xx - yy) * sh_vector(at, 6u)
                - 1.0925484305920792 * d.x * d.z * sh_vector(at, 7u)
                + 0.5462742152960396 * (xx - yy) * sh_vector(at, 8u);
        }
        if (page.coefficients >= 16u) {
            color += -0.5900435899266435 * d.y * (3.0 * xx - yy) * sh_vector(at, 9u)
                + 2.890611442640554 * d.x * d.y * d.z * sh_vector(at, 10u)
                - 0.4570457994644658 * d.y * (4.0 * zz - xx - yy) * sh_vector(at, 11u)
                + 0.3731763325901154 * d.z * (2.0 * zz - 3.0 * xx - 3.0 * yy) * sh_vector(at, 12u)
                - 0.4570457994644658 * d.x * (4.0 * zz - xx - yy) * sh_vector(at, 13u)
                + 1.445305721320277 * d.z * (xx - yy) * sh_vector(at, 14u)
                - 0.5900435899266435 * d.x * (xx - 3.0 * yy) * sh_vector(at, 15u);
        }
    }
    return max(color, vec3f(0.0));
}
