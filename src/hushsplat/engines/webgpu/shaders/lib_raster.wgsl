// The quads of the stochastic raster: a quad a Gaussian, drawn near to far, bucket by bucket.
// Whoever includes this binds `view`, `page`, `sample`, `fixed`, `ids`, `order` and `arguments`.
//!include lib_quad
//!include lib_project
//!include lib_hash

override EXACT_DEPTH: bool = false;  // each fragment's own depth (entry point `exact`), else the plane through the quad

override CENTER_DEPTH: bool = false;  // that of the centre for all its fragments

struct Sample {
    salt: u32,  // of the primitives' keys
}

const LOW_PASS: f32 = 2.0;  // 1 / px²: D² of the low-pass is this times the squared distance

// Whether a surfel's fragments have the slope of its plane along the short and the long axis of its footprint, of
// D² = short a² + long b². The low-pass decides outside of a cone around the long axis, and depth is the centre's there.
// Along each axis the slope is taken that the larger part of the fragments has, weighted by how far it moves them and by
// exp(-D² / 2): the least mean error. Integrals over the angle in closed form; perspective is left out.
fn has_slope(short: f32, long: f32) -> vec2<bool> {
    if (short <= LOW_PASS || long >= LOW_PASS) {
        return vec2<bool>(short <= LOW_PASS);  // the plane everywhere, or nowhere
    }
    let across = sqrt((LOW_PASS - long) / (short - long));  // sine of the cone's half angle
    let along = sqrt((short - LOW_PASS) / (short - long));  // cosine
    return vec2<bool>(inverseSqrt(long) - along * inverseSqrt(LOW_PASS) > short * along * pow(LOW_PASS, -1.5),
                      across * (LOW_PASS + long) > long);
}

// near / z at a place of the quad by one plane for all its fragments, so that depth is tested before shading.
// A surfel's own plane is exact, but not where the low-pass decides.
// An ellipsoid's 1 / z is (t + h / t) / z of the centre: its plane t is raised by the mean of h over the footprint.
fn plane_depth(f: Footprint, at: vec2f) -> f32 {
    let xx = f.ux * f.ux;  // AᵀA, A = (ux uy; 0 vy): the inverse of the footprint's covariance
    let xy = f.ux * f.uy;
    let yy = f.uy * f.uy + f.vy * f.vy;
    var g = f.g;
    var raised = 1.0;
    if (SURFELS) {
        let half_difference = 0.5 * (xx - yy);
        let radius = sqrt(half_difference * half_difference + xy * xy);
        let short = 0.5 * (xx + yy) + radius;
        let turned = select(vec2f(xy, radius - half_difference), vec2f(radius + half_difference, xy), half_difference >= 0.0);
        let axis = turned / max(length(turned), 1e-30);
        let along_axis = axis * dot(g, axis);
        let has = has_slope(short, max((xx * yy - xy * xy) / short, 1e-12));
        g = select(vec2f(0.0), along_axis, has.x) + select(vec2f(0.0), g - along_axis, has.y);
    } else {
        raised += (f.hxx * yy - f.hxy * xy + f.hyy * xx) / max(xx * yy - xy * xy, 1e-30);
    }
    return f.inverse_depth * view.near * (raised + dot(g, at - f.center));
}

@vertex
fn vertex(@builtin(vertex_index) number: u32, @builtin(instance_index) instance: u32) -> Varying {
    let drawn = instance * QUADS + number / 4u;
    if (drawn >= arguments.count) {
        return outside();
    }
    let index = order[arguments.first + drawn] - page.base;
    var f: Footprint;
    _ = project(index, &f);
    let at = corner(f, number % 4u);
    var depth = 0.5;
    if (CENTER_DEPTH) {
        depth = f.inverse_depth * view.near;
    } else if (!EXACT_DEPTH) {
        depth = plane_depth(f, at);
    }
    var out = varying_of(f, at, depth, index + page.base);
    // The table entry of pixel (0, 0), before the mask: the pattern is anchored to the pixel of the centre.
    let anchor = vec2i(floor(clamp(f.center, vec2f(-MAX_CENTER_PX), vec2f(MAX_CENTER_PX))));
    let key = mix32(ids[index] ^ sample.salt);
    out.extra.x = bitcast<f32>((key - bitcast<u32>(anchor.x) - ROW_STEP * bitcast<u32>(anchor.y)) & (TABLE_SIZE - 1u));
    return out;
}
