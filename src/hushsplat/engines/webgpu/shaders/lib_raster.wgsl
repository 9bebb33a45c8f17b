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

// 1 / px², squared inverse size from which on an axis counts as the low-pass's (2 / px²); ours: 2 to 10 measured on
// three views of demo:, 99.55 % of the winners are the exact ones at 6, 99.0 % at 2.
const LOW_PASS_FROM: f32 = 6.0;

// near / z at a place of the quad by one plane for all its fragments, so that depth is tested before shading.
// A surfel's own plane is exact, but not across an axis along which the low-pass decides: depth is the centre's there.
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
        let large = 0.5 * (xx + yy) + radius;
        if (large > LOW_PASS_FROM) {
            let turned = select(vec2f(xy, radius - half_difference), vec2f(radius + half_difference, xy), half_difference >= 0.0);
            let axis = turned / max(length(turned), 1e-30);
            g -= axis * dot(g, axis);
            g = select(g, vec2f(0.0), large - 2.0 * radius > LOW_PASS_FROM);
        }
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
