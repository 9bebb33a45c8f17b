// A Gaussian as packing.py writes it. Whoever includes this binds `page` and `fixed`.
//!include spec
//!include lib_view

override COMPACT: bool = true;  // seven words a Gaussian, else ten of float32

fn fixed_at(index: u32) -> u32 {
    return index * select(10u, 7u, COMPACT);
}

fn fixed_vector(at: u32) -> vec3f {
    return bitcast<vec3f>(vec3u(fixed[at], fixed[at + 1u], fixed[at + 2u]));
}

fn mean_of(index: u32) -> vec3f {
    return fixed_vector(fixed_at(index));
}

// 2 ln(opacity); very low: never drawn.
fn log_opacity_of(index: u32) -> f32 {
    let at = fixed_at(index);
    if (!COMPACT) {
        return bitcast<f32>(fixed[at + 9u]);
    }
    let bits = fixed[at + 6u] >> 16u;
    return select((f32(bits) - 1.0) / 65534.0 * MAX_LEVEL - MAX_LEVEL, -1e3, bits == 0u);
}

// The axes of a compact Gaussian as columns.
fn compact_axes(at: u32) -> mat3x3f {
    let wx = unpack2x16snorm(fixed[at + 3u]);
    let yz = unpack2x16snorm(fixed[at + 4u]);
    let turned = normalize(vec4f(wx, yz));
    let w = turned.x;
    let x = turned.y;
    let y = turned.z;
    let z = turned.w;
    let bits = vec3f(f32(fixed[at + 5u] & 0xffffu), f32(fixed[at + 5u] >> 16u), f32(fixed[at + 6u] & 0xffffu));
    let scales = exp2(page.scale_first + bits * page.scale_step);
    return mat3x3f(
        scales.x * vec3f(1.0 - 2.0 * (y * y + z * z), 2.0 * (x * y + w * z), 2.0 * (x * z - w * y)),
        scales.y * vec3f(2.0 * (x * y - w * z), 1.0 - 2.0 * (x * x + z * z), 2.0 * (y * z + w * x)),
        scales.z * vec3f(2.0 * (x * z + w * y), 2.0 * (y * z - w * x), 1.0 - 2.0 * (x * x + y * y)));
}

// The two axes of a surfel.
fn surfel_axes(index: u32) -> mat2x3f {
    let at = fixed_at(index);
    if (COMPACT) {
        let axes = compact_axes(at);
        return mat2x3f(axes[0], axes[1]);
    }
    return mat2x3f(fixed_vector(at + 3u), fixed_vector(at + 6u));
}

// The covariance of an ellipsoid.
fn covariance_of(index: u32) -> mat3x3f {
    let at = fixed_at(index);
    if (COMPACT) {
        let axes = compact_axes(at);
        return axes * transpose(axes);
    }
    let a = fixed_vector(at + 3u);  // xx, xy, xz
    let b = fixed_vector(at + 6u);  // yy, yz, zz
    return mat3x3f(a, vec3f(a.y, b.x, b.y), vec3f(a.z, b.y, b.z));
}
