// SVGF over space as the paper adapted it: one 3×3 pass.
//!include lib_svgf
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: SvgfSettings;
@group(0) @binding(2) var<storage, read> state: array<vec4f>;
@group(0) @binding(3) var<storage, read_write> shown: array<vec4f>;

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    var first = 0.0;
    var second = 0.0;
    for (var k = 0; k < 9; k++) {
        let there = place(px + vec2i(k % 3, k / 3) - 1, size);
        first += state[2 * there].w / 9.0;
        second += state[2 * there + 1].x / 9.0;
    }
    let variance = max(second - first * first, 0.0);
    let guide = smooth_depth(px, size);
    let own = luma(state[2 * at].rgb);
    var sum = vec3f(0.0);
    var total = 0.0;
    for (var j = -1; j <= 1; j++) {
        for (var i = -1; i <= 1; i++) {
            let there = place(px + vec2i(i, j), size);
            let color = state[2 * there].rgb;
            let weight = f32((2 - abs(i)) * (2 - abs(j))) / 16.0
                * depth_weight(depth_of(there), guide) * luma_weight(luma(color), own, variance);
            sum += weight * color;
            total += weight;
        }
    }
    shown[at] = vec4f(max(sum / total, vec3f(0.0)), 0.0);
}
