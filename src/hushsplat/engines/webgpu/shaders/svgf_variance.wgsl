// SVGF: the variance that steers the à-trous passes, from the moments of the pixel, or of 7×7 while history is short.
//!include lib_svgf
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: SvgfSettings;
@group(0) @binding(2) var<storage, read> state: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> filtered: array<vec4f>;  // RGB, variance

const SHORT_HISTORY: f32 = 4.0;  // frames (Schied et al. 2017)

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let mean = state[2 * at];
    let kept = state[2 * at + 1];
    var variance = max(kept.x - mean.w * mean.w, 0.0);
    if (kept.y < SHORT_HISTORY) {
        let guide = smooth_depth(px, size);
        var moments = vec2f(0.0);
        var total = 0.0;
        for (var j = -3; j <= 3; j++) {
            for (var i = -3; i <= 3; i++) {
                let there = px + vec2i(i, j);
                if (all(there >= vec2i(0)) && all(there < size)) {
                    let index = there.y * size.x + there.x;
                    let weight = depth_weight(depth_of(index), guide);
                    moments += weight * vec2f(state[2 * index].w, state[2 * index + 1].x);
                    total += weight;
                }
            }
        }
        moments /= total;
        variance = max(moments.y - moments.x * moments.x, 0.0) * SHORT_HISTORY / kept.y;
    }
    filtered[at] = vec4f(mean.rgb, variance);
}
