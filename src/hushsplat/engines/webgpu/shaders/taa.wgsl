// Temporal anti-aliasing: a reprojected running mean, clipped to the 3×3 neighbourhood while the camera moves.
//!include lib_resample
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: TaaSettings;
@group(0) @binding(2) var<storage, read> observed: array<vec4f>;
@group(0) @binding(3) var<storage, read> state_before: array<vec4f>;  // 2 a pixel: mean and history length, spare
@group(0) @binding(4) var<storage, read_write> state: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> shown: array<vec4f>;

fn depth_at(px: vec2i) -> f32 {
    return usable(observed[px.y * i32(step.width) + px.x]).a;
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let color = usable(observed[at]).rgb;
    var old = vec4f(0.0);  // mean, history length
    if (step.has_history == 1u && step.is_static == 1u) {
        old = state_before[2 * at];
    } else if (step.has_history == 1u) {
        let to = moved(px, filled_depth(px, size));
        let nearest = pixel_before(px, to.px);
        if (all(nearest >= vec2i(0)) && all(nearest < size)) {
            old = resampled(px, to.px, size, 0);
        }
        var middle = vec3f(0.0);
        var around: array<vec3f, 9>;
        for (var k = 0; k < 9; k++) {
            let there = clamp(px + vec2i(k % 3, k / 3) - 1, vec2i(0), size - 1);
            around[k] = usable(observed[there.y * size.x + there.x]).rgb;
            middle += around[k] / 9.0;
        }
        var variance = vec3f(0.0);
        for (var k = 0; k < 9; k++) {
            variance += (around[k] - middle) * (around[k] - middle) / 9.0;
        }
        let reach = settings.gamma * sqrt(variance);
        old = vec4f(clamp(old.rgb, middle - reach, middle + reach), old.w);
    }
    let total = old.w + 1.0;
    let mean = old.rgb + (color - old.rgb) / total;
    state[2 * at] = vec4f(mean, min(total, settings.cap_frames));
    state[2 * at + 1] = vec4f(0.0);
    shown[at] = vec4f(max(mean, vec3f(0.0)), 0.0);
}
