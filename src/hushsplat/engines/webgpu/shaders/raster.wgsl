// The stochastic raster: a quad a Gaussian; a fragment is kept if D² lies below its random level, the nearest wins.
//!include lib_quad
//!include lib_project
//!include lib_hash

override EXACT_DEPTH: bool = false;  // each fragment's own depth (entry point `exact`), else the plane through the quad

struct Sample {
    salt: u32,  // of the primitives' keys
}

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<uniform> sample: Sample;
@group(0) @binding(3) var<storage, read> fixed: array<u32>;
@group(0) @binding(4) var<storage, read> ids: array<u32>;  // index in the file
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> arguments: Arguments;
@group(0) @binding(7) var<storage, read> levels: array<f32>;

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
    var out = varying_of(f, at, select(plane_depth(f, at), 0.5, EXACT_DEPTH), index + page.base);
    // The table entry of pixel (0, 0), before the mask: the pattern is anchored to the pixel of the centre.
    let anchor = vec2i(floor(clamp(f.center, vec2f(-MAX_CENTER_PX), vec2f(MAX_CENTER_PX))));
    let key = mix32(ids[index] ^ sample.salt);
    out.extra.x = bitcast<f32>((key - bitcast<u32>(anchor.x) - ROW_STEP * bitcast<u32>(anchor.y)) & (TABLE_SIZE - 1u));
    return out;
}

fn kept(in: Varying) -> Fragment {
    var found = fragment_at(footprint_of(in), in.position.xy);
    let pixel = vec2u(in.position.xy);
    let entry = (bitcast<u32>(in.extra.x) + pixel.x + ROW_STEP * pixel.y) & (TABLE_SIZE - 1u);
    found.counts = found.counts && found.q < (levels[entry] + in.h_depth.w) * found.s;
    return found;
}

@fragment
fn plane(in: Varying) -> @location(0) u32 {
    if (!kept(in).counts) {
        discard;
    }
    return in.index;
}

struct Exact {
    @location(0) index: u32,
    @builtin(frag_depth) depth: f32,
}

@fragment
fn exact(in: Varying) -> Exact {
    let found = kept(in);
    if (!found.counts) {
        discard;
    }
    return Exact(in.index, found.inverse_depth * view.near);
}
