// Where a pixel was in the frame before (docs/denoiser.md, "Reproject").
// Whoever includes this binds `step` and has `depth_at(pixel) -> f32`, 0 where nothing was hit.
//!include lib_step

// A pixel's own depth, else the mean of its neighbours' that have one, else the far plane.
fn filled_depth(px: vec2i, size: vec2i) -> f32 {
    let own = depth_at(px);
    if (own > 0.0) {
        return own;
    }
    var sum = 0.0;
    var count = 0.0;
    for (var j = -1; j <= 1; j++) {
        for (var i = -1; i <= 1; i++) {
            let at = px + vec2i(i, j);
            if (all(at >= vec2i(0)) && all(at < size)) {
                let depth = depth_at(at);
                if (depth > 0.0) {
                    sum += depth;
                    count += 1.0;
                }
            }
        }
    }
    return select(step.far_depth, sum / max(count, 1.0), count > 0.0);
}

struct Moved {
    px: vec2f,   // previous - current
    depth: f32,  // seen from the previous camera
}

// All terms are differences: float32 rounds relative to the motion, not to the place in the picture.
fn moved(px: vec2i, depth: f32) -> Moved {
    let ray = vec2f((f32(px.x) + (0.5 - step.cx)) / step.fx, (f32(px.y) + (0.5 - step.cy)) / step.fy);
    let inverse = 1.0 / depth;
    let x = step.m00 * ray.x + step.m01 * ray.y + step.m02 + step.m03 * inverse;
    let y = step.m10 * ray.x + step.m11 * ray.y + step.m12 + step.m13 * inverse;
    let z = step.m20 * ray.x + step.m21 * ray.y + step.m22 + step.m23 * inverse;
    let scale = 1.0 + z;
    let lens = vec2f((step.before_fx - step.fx) * ray.x + step.before_cx - step.cx,
                     (step.before_fy - step.fy) * ray.y + step.before_cy - step.cy);
    var motion = vec2f(step.before_fx * (x - ray.x * z) / scale, step.before_fy * (y - ray.y * z) / scale) + lens;
    let depth_before = depth * scale;
    if (!(depth_before > NEAREST_DEPTH) || !is_within(motion.x, FARTHEST_PX) || !is_within(motion.y, FARTHEST_PX)) {
        motion = vec2f(FARTHEST_PX);
    }
    return Moved(motion, depth_before);
}

// The pixel in which the place lies; what lies behind the previous camera has moved too far to be inside.
fn pixel_before(px: vec2i, motion: vec2f) -> vec2i {
    return px + vec2i(floor(motion + 0.5));
}

// Weights of the taps at -1, 0, 1, 2 of the cubic with this a; -0.5 is Catmull-Rom.
fn tap_weights(t: f32, a: f32) -> vec4f {
    return vec4f(((a * t - 2.0 * a) * t + a) * t, ((a + 2.0) * t - (a + 3.0)) * t * t + 1.0,
                 ((-(a + 2.0) * t + (2.0 * a + 3.0)) * t - a) * t, (a - a * t) * t * t);
}
