// A footprint and its colour in memory: 68 B.
//!include lib_footprint

struct Stored {
    center_x: f32, center_y: f32,
    ux: f32, uy: f32, vy: f32,
    gx: f32, gy: f32,
    hxx: f32, hxy: f32, hyy: f32,
    inverse_depth: f32,
    log_opacity: f32,
    low: u32,   // x, y of 16 bits, px
    high: u32,
    r: f32, g: f32, b: f32,
}

fn stored(f: Footprint, color: vec3f) -> Stored {
    let low = vec2u(f.low);
    let high = vec2u(f.high);
    return Stored(f.center.x, f.center.y, f.ux, f.uy, f.vy, f.g.x, f.g.y, f.hxx, f.hxy, f.hyy, f.inverse_depth,
                  f.log_opacity, low.x | (low.y << 16u), high.x | (high.y << 16u), color.r, color.g, color.b);
}

fn footprint_in(s: Stored) -> Footprint {
    let low = vec2f(f32(s.low & 0xffffu), f32(s.low >> 16u));
    let high = vec2f(f32(s.high & 0xffffu), f32(s.high >> 16u));
    return Footprint(vec2f(s.center_x, s.center_y), s.ux, s.uy, s.vy, vec2f(s.gx, s.gy), s.hxx, s.hxy, s.hyy,
                     s.inverse_depth, s.log_opacity, low, high);
}
