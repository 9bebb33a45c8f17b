// The footprint of a Gaussian, and its fragments. Whoever includes this binds `view`.
//!include spec
//!include lib_view

override SURFELS: bool = false;

// D² of the offset d from the centre is (u² + v²) / s, u = ux d.x + uy d.y, v = vy d.y, t = 1 + g·d; s = t² for a
// surfel, t² + h(d, d) for an ellipsoid. 1 / z is t / z of the centre for a surfel, s / t / z for an ellipsoid.
struct Footprint {
    center: vec2f,        // px
    ux: f32, uy: f32, vy: f32,
    g: vec2f,
    hxx: f32, hxy: f32, hyy: f32,
    inverse_depth: f32,   // of the centre
    log_opacity: f32,     // 2 ln(opacity); less what the filter of an anti-aliased scene takes
    low: vec2f,           // the box of the pixels whose centre it can cover
    high: vec2f,
}

// Of a pixel: D² is q / s, and 1 / z. Where `counts` is false there is no fragment.
struct Fragment {
    q: f32,
    s: f32,
    inverse_depth: f32,
    counts: bool,
}

fn fragment_at(f: Footprint, pixel: vec2f) -> Fragment {
    let d = pixel - f.center;
    let t = 1.0 + dot(f.g, d);
    let u = f.ux * d.x + f.uy * d.y;
    let v = f.vy * d.y;
    var out = Fragment(u * u + v * v, t * t, f.inverse_depth * t, true);
    if (SURFELS) {
        let low_pass = 2.0 * dot(d, d);
        let on_plane = out.q <= low_pass * out.s && t > 0.0 && out.inverse_depth * view.near < 1.0;
        if (!on_plane) {
            out = Fragment(low_pass, 1.0, f.inverse_depth, true);
        }
    } else {
        out.s += (f.hxx * d.x + f.hxy * d.y) * d.x + f.hyy * d.y * d.y;
        out.inverse_depth = f.inverse_depth * out.s / t;
        out.counts = t > 0.0 && out.s > 0.0 && out.inverse_depth * view.near < 1.0;
    }
    return out;
}
