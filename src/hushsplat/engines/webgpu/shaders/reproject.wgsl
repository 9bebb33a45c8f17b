// Pass 1: the previous state as this frame's camera sees it.
//!include lib_reproject
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> pyramid: array<vec4f>;
@group(0) @binding(2) var<storage, read> state_before: array<vec4f>;   // 3 a pixel: S Y², n_s t_s n_h t_h, D depth
@group(0) @binding(3) var<storage, read> shown_before: array<vec4f>;   // RGB
@group(0) @binding(4) var<storage, read_write> history: array<vec4f>;  // 4 a pixel: the state, D with this frame's depth,
                                                                       // shown with r, the relative difference of depth
                                                                       // (-1: no history)
@group(0) @binding(5) var<storage, read_write> motion_px: array<vec2f>;
@group(0) @binding(6) var<uniform> settings: DenoiserSettings;

fn depth_at(px: vec2i) -> f32 {
    return pyramid[px.y * i32(step.width) + px.x].w;
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let depth = filled_depth(px, size);
    var a = vec4f(0.0);
    var b = vec4f(0.0);
    var c = vec4f(0.0);
    var h = vec4f(0.0);
    var relative_depth = -1.0;
    var motion = vec2f(0.0);
    if (step.has_history == 1u && step.is_static == 1u) {
        a = state_before[3 * at];
        b = state_before[3 * at + 1];
        c = state_before[3 * at + 2];
        h = shown_before[at];
        relative_depth = abs(depth - c.w) / max(depth, c.w);
    } else if (step.has_history == 1u) {
        let to = moved(px, depth);
        motion = to.px;
        let nearest = pixel_before(px, motion);
        if (all(nearest >= vec2i(0)) && all(nearest < size)) {
            let base = floor(motion);
            let first = px + vec2i(base);
            let wx = tap_weights(motion.x - base.x, -settings.resample_sharpness);
            let wy = tap_weights(motion.y - base.y, -settings.resample_sharpness);
            var low_a = vec4f(3e38);
            var low_b = low_a;
            var low_c = low_a;
            var low_h = low_a;
            var high_a = -low_a;
            var high_b = high_a;
            var high_c = high_a;
            var high_h = high_a;
            for (var j = 0; j < 4; j++) {
                let row = clamp(first.y + j - 1, 0, size.y - 1) * size.x;
                var line_a = vec4f(0.0);
                var line_b = line_a;
                var line_c = line_a;
                var line_h = line_a;
                for (var i = 0; i < 4; i++) {
                    let at = row + clamp(first.x + i - 1, 0, size.x - 1);
                    let tap_a = state_before[3 * at];
                    let tap_b = state_before[3 * at + 1];
                    let tap_c = state_before[3 * at + 2];
                    let tap_h = shown_before[at];
                    line_a += wx[i] * tap_a;
                    line_b += wx[i] * tap_b;
                    line_c += wx[i] * tap_c;
                    line_h += wx[i] * tap_h;
                    if ((i == 1 || i == 2) && (j == 1 || j == 2)) {
                        low_a = min(low_a, tap_a);
                        low_b = min(low_b, tap_b);
                        low_c = min(low_c, tap_c);
                        low_h = min(low_h, tap_h);
                        high_a = max(high_a, tap_a);
                        high_b = max(high_b, tap_b);
                        high_c = max(high_c, tap_c);
                        high_h = max(high_h, tap_h);
                    }
                }
                a += wy[j] * line_a;
                b += wy[j] * line_b;
                c += wy[j] * line_c;
                h += wy[j] * line_h;
            }
            // Kept within the four central taps, or only lengths and trusts within their ranges.
            if (settings.resample_clamp == 1u) {
                a = clamp(a, low_a, high_a);
                b = clamp(b, low_b, high_b);
                c = clamp(c, low_c, high_c);
                h = clamp(h, low_h, high_h);
            } else {
                b = clamp(b, vec4f(0.0), vec4f(settings.accumulated_cap_frames, 1.0, settings.denoised_cap_frames, 1.0));
            }
            let seen = state_before[3 * (nearest.y * size.x + nearest.x) + 2].w;
            relative_depth = abs(to.depth - seen) / max(to.depth, seen);
        }
    }
    history[4 * at] = a;
    history[4 * at + 1] = b;
    history[4 * at + 2] = vec4f(c.xyz, depth);
    history[4 * at + 3] = vec4f(h.xyz, relative_depth);
    motion_px[at] = motion;
}
