// One step of a denoiser: picture, cameras of this frame and of the one before, and how points move between them.
//!include spec

struct Step {
    width: u32, height: u32,
    fx: f32, fy: f32, cx: f32, cy: f32,
    before_fx: f32, before_fy: f32, before_cx: f32, before_cy: f32,
    m00: f32, m01: f32, m02: f32, m03: f32,  // previous from current less the identity: rotation, translation
    m10: f32, m11: f32, m12: f32, m13: f32,
    m20: f32, m21: f32, m22: f32, m23: f32,
    has_history: u32,
    is_static: u32,  // the camera has not moved
    far_depth: f32,  // of a pixel that no neighbour fills
}

fn picture_size() -> vec2i {
    return vec2i(i32(step.width), i32(step.height));
}

const LARGEST_VALUE: f32 = 1e9;   // of a colour or a depth; beyond, squares and quotients leave float32
const NEAREST_DEPTH: f32 = 1e-6;  // world units: what is nearer to the previous camera has no place in its picture
const FARTHEST_PX: f32 = 1e9;     // stands for a motion that has no number

// WGSL may assume that no value is infinite or NaN: their bits tell.
fn is_within(value: f32, largest: f32) -> bool {
    return (bitcast<u32>(value) & 0x7fffffffu) <= bitcast<u32>(largest);
}

// RGB and depth of a pixel; black and without depth where a value cannot be used.
fn usable(seen: vec4f) -> vec4f {
    let fine = is_within(seen.r, LARGEST_VALUE) && is_within(seen.g, LARGEST_VALUE)
        && is_within(seen.b, LARGEST_VALUE) && is_within(seen.a, LARGEST_VALUE);
    return select(vec4f(0.0), vec4f(seen.rgb, max(seen.a, 0.0)), fine);
}

fn luma(c: vec3f) -> f32 {
    return 0.25 * c.r + 0.5 * c.g + 0.25 * c.b;
}

fn ycocg_from_rgb(c: vec3f) -> vec3f {
    return vec3f(luma(c), 0.5 * c.r - 0.5 * c.b, -0.25 * c.r + 0.5 * c.g - 0.25 * c.b);
}

fn rgb_from_ycocg(c: vec3f) -> vec3f {
    return vec3f(c.x + c.y - c.z, c.x + c.z, c.x - c.y - c.z);
}
