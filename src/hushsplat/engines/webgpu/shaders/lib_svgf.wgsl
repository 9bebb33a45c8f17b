// What the passes of SVGF over space share. Whoever includes this binds `step`, `settings` and `state`.
//!include lib_step

const WEIGHT_FLOOR: f32 = 1e-2;  // added to the scale of the edge stopping weights: no division by 0

fn place(px: vec2i, size: vec2i) -> i32 {
    let inside = clamp(px, vec2i(0), size - 1);
    return inside.y * size.x + inside.x;
}

fn depth_of(at: i32) -> f32 {
    return state[2 * at + 1].z;
}

// Mean depth over 3×3 pixels, edges repeated.
fn smooth_depth(px: vec2i, size: vec2i) -> f32 {
    var sum = 0.0;
    for (var k = 0; k < 9; k++) {
        sum += depth_of(place(px + vec2i(k % 3, k / 3) - 1, size)) / 9.0;
    }
    return sum;
}

// 1 at equal depth, 1/e at a relative difference of sigma_depth.
fn depth_weight(tap: f32, guide: f32) -> f32 {
    return exp(-abs(tap - guide) / (settings.sigma_depth * guide + WEIGHT_FLOOR));
}

// 1 at equal luminance, 1/e at sigma_luma standard deviations.
fn luma_weight(tap: f32, own: f32, variance: f32) -> f32 {
    return exp(-abs(tap - own) / (settings.sigma_luma * sqrt(variance) + WEIGHT_FLOOR));
}
