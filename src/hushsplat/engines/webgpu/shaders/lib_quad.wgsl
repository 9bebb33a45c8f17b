// The quad that is drawn for a Gaussian.
//!include lib_footprint
//!include lib_arguments

struct Varying {
    @builtin(position) position: vec4f,
    @location(0) @interpolate(flat) center_u: vec4f,   // center, ux, uy
    @location(1) @interpolate(flat) v_g_h: vec4f,      // vy, g, hxx
    @location(2) @interpolate(flat) h_depth: vec4f,    // hxy, hyy, 1 / z, 2 ln(opacity)
    @location(3) @interpolate(flat) extra: vec4f,      // of the pass
    @location(4) @interpolate(flat) index: u32,        // in the scene
}

// A corner in px. The footprint D² <= level is the conic dᵀMd + 2bᵀd - level <= 0; its oriented quad has a fifth to a
// quarter fewer fragments than the box.
fn corner(f: Footprint, number: u32) -> vec2f {
    let side = vec2f(select(-1.0, 1.0, (number & 1u) == 1u), select(-1.0, 1.0, (number & 2u) == 2u));
    let box = mix(f.low, f.high, 0.5 + 0.5 * side);
    if (SURFELS) {
        return box;  // it must hold the low-pass, too
    }
    let level = f.log_opacity + MAX_LEVEL;
    let mxx = f.ux * f.ux - level * (f.g.x * f.g.x + f.hxx);
    let mxy = f.ux * f.uy - level * (f.g.x * f.g.y + 0.5 * f.hxy);
    let myy = f.uy * f.uy + f.vy * f.vy - level * (f.g.y * f.g.y + f.hyy);
    let det = mxx * myy - mxy * mxy;
    if (!(mxx > 0.0 && det > 1e-6 * mxx * myy)) {
        return box;  // no ellipse, or one that float32 does not know
    }
    let b = -level * f.g;
    let middle = -vec2f(myy * b.x - mxy * b.y, mxx * b.y - mxy * b.x) / det;
    let size = level - dot(b, middle);
    let mean = 0.5 * (mxx + myy);
    let half_difference = 0.5 * (mxx - myy);
    let radius = sqrt(half_difference * half_difference + mxy * mxy);
    let large = mean + radius;  // eigenvalue of the short axis
    let small = max(det / large, 1e-12);
    var short_axis = select(vec2f(mxy, radius - half_difference), vec2f(radius + half_difference, mxy), half_difference >= 0.0);
    let axis_length = length(short_axis);
    short_axis = select(vec2f(1.0, 0.0), short_axis / max(axis_length, 1e-30), axis_length > 1e-20);
    let short_px = sqrt(size / large) * 1.002 + 0.02;  // against rounding
    let long_px = sqrt(size / small) * 1.002 + 0.02;
    let extent = f.high - f.low;
    if (!(long_px < 2.0 * max(extent.x, extent.y) + 8.0) || 4.0 * short_px * long_px > extent.x * extent.y) {
        return box;  // clipped by the picture or the near plane
    }
    return f.center + middle + short_axis * short_px * side.x + vec2f(-short_axis.y, short_axis.x) * long_px * side.y;
}

fn outside() -> Varying {
    var out: Varying;
    out.position = vec4f(2.0, 2.0, 0.0, 1.0);
    return out;
}

// w = 1 makes depth linear in the picture: near / z of the surfel's plane, nearly that of the ellipsoid.
fn varying_of(f: Footprint, at: vec2f, depth: f32, index: u32) -> Varying {
    var out: Varying;
    out.position = vec4f(2.0 * at.x / f32(view.width) - 1.0, 1.0 - 2.0 * at.y / f32(view.height), depth, 1.0);
    out.center_u = vec4f(f.center, f.ux, f.uy);
    out.v_g_h = vec4f(f.vy, f.g, f.hxx);
    out.h_depth = vec4f(f.hxy, f.hyy, f.inverse_depth, f.log_opacity);
    out.index = index;
    return out;
}

fn footprint_of(in: Varying) -> Footprint {
    var f: Footprint;
    f.center = in.center_u.xy;
    f.ux = in.center_u.z;
    f.uy = in.center_u.w;
    f.vy = in.v_g_h.x;
    f.g = in.v_g_h.yz;
    f.hxx = in.v_g_h.w;
    f.hxy = in.h_depth.x;
    f.hyy = in.h_depth.y;
    f.inverse_depth = in.h_depth.z;
    f.log_opacity = in.h_depth.w;
    return f;
}
