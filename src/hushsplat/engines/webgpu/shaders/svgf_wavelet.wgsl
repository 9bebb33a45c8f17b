// SVGF: one à-trous pass over colour and its variance; taps beyond the picture have no weight.
//!include lib_svgf
//!include lib_each_pixel

struct Wavelet {
    stride: i32,     // px between two taps
    feeds_back: u32, // the result becomes the history
    is_last: u32,    // the result is shown
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: SvgfSettings;
@group(0) @binding(2) var<uniform> wavelet: Wavelet;
@group(0) @binding(3) var<storage, read_write> state: array<vec4f>;
@group(0) @binding(4) var<storage, read> unfiltered: array<vec4f>;      // RGB, variance
@group(0) @binding(5) var<storage, read_write> filtered: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> shown: array<vec4f>;

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let guide = smooth_depth(px, size);
    let own = luma(unfiltered[at].rgb);
    var blurred = 0.0;
    for (var j = -1; j <= 1; j++) {
        for (var i = -1; i <= 1; i++) {
            blurred += unfiltered[place(px + vec2i(i, j), size)].w * f32((2 - abs(i)) * (2 - abs(j))) / 16.0;
        }
    }
    var kernel = vec3f(0.5, 0.25, 0.0);  // binomial, from the middle on
    var radius = 1;
    if (settings.kernel == 5u) {
        kernel = vec3f(0.375, 0.25, 0.0625);  // B3 spline
        radius = 2;
    }
    var sum = vec3f(0.0);
    var variance = 0.0;
    var total = 0.0;
    for (var j = -radius; j <= radius; j++) {
        for (var i = -radius; i <= radius; i++) {
            let there = px + wavelet.stride * vec2i(i, j);
            if (all(there >= vec2i(0)) && all(there < size)) {
                let index = there.y * size.x + there.x;
                let tap = unfiltered[index];
                let weight = kernel[abs(i)] * kernel[abs(j)]
                    * depth_weight(depth_of(index), guide) * luma_weight(luma(tap.rgb), own, blurred);
                sum += weight * tap.rgb;
                variance += weight * weight * tap.w;
                total += weight;
            }
        }
    }
    let color = sum / total;
    filtered[at] = vec4f(color, variance / (total * total));
    if (wavelet.feeds_back == 1u) {
        state[2 * at] = vec4f(color, state[2 * at].w);
    }
    if (wavelet.is_last == 1u) {
        shown[at] = vec4f(max(color, vec3f(0.0)), 0.0);
    }
}
