// A baseline's history at another place: Catmull-Rom, kept within the four central taps.
// Whoever includes this binds `state_before`, two vec4f a pixel, and what lib_reproject.wgsl asks for.
//!include lib_reproject

fn resampled(px: vec2i, motion: vec2f, size: vec2i, part: i32) -> vec4f {
    let base = floor(motion);
    let first = px + vec2i(base);
    let wx = tap_weights(motion.x - base.x, -0.5);
    let wy = tap_weights(motion.y - base.y, -0.5);
    var sum = vec4f(0.0);
    var low = vec4f(3e38);
    var high = -low;
    for (var j = 0; j < 4; j++) {
        let row = clamp(first.y + j - 1, 0, size.y - 1) * size.x;
        for (var i = 0; i < 4; i++) {
            let tap = state_before[2 * (row + clamp(first.x + i - 1, 0, size.x - 1)) + part];
            sum += wx[i] * wy[j] * tap;
            if ((i == 1 || i == 2) && (j == 1 || j == 2)) {
                low = min(low, tap);
                high = max(high, tap);
            }
        }
    }
    return clamp(sum, low, high);
}
