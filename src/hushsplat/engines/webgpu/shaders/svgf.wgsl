// SVGF over time: colour and moments of the luminance, integrated along the reprojected history.
//!include lib_resample
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: SvgfSettings;
@group(0) @binding(2) var<storage, read> observed: array<vec4f>;
@group(0) @binding(3) var<storage, read> state_before: array<vec4f>;  // 2 a pixel: RGB and first moment,
                                                                      // second moment, history length, depth, spare
@group(0) @binding(4) var<storage, read_write> state: array<vec4f>;

const LONGEST_HISTORY: f32 = 65536.0;  // frames

fn depth_at(px: vec2i) -> f32 {
    return usable(observed[px.y * i32(step.width) + px.x]).a;
}

// A pixel's own depth, else that of the nearest neighbour that has one (beside before diagonal), else the far plane.
fn nearest_depth(px: vec2i, size: vec2i) -> f32 {
    let neighbours = array<vec2i, 9>(vec2i(0, 0), vec2i(0, -1), vec2i(-1, 0), vec2i(1, 0), vec2i(0, 1),
                                     vec2i(-1, -1), vec2i(1, -1), vec2i(-1, 1), vec2i(1, 1));
    for (var k = 0; k < 9; k++) {
        let there = px + neighbours[k];
        if (all(there >= vec2i(0)) && all(there < size)) {
            let depth = depth_at(there);
            if (depth > 0.0) {
                return depth;
            }
        }
    }
    return step.far_depth;
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    var depth = 0.0;
    if (settings.passes > 0u) {
        depth = filled_depth(px, size);
    } else {
        depth = nearest_depth(px, size);
    }
    let color = usable(observed[at]).rgb;
    let own = luma(color);
    var mean = vec4f(color, own);
    var second = own * own;
    var frames = 1.0;
    if (step.has_history == 1u) {
        var to = Moved(vec2f(0.0), depth);
        if (step.is_static == 0u) {
            to = moved(px, depth);
        }
        let nearest = pixel_before(px, to.px);
        var close = 0;
        var shortest = LONGEST_HISTORY;
        if (all(nearest >= vec2i(0)) && all(nearest < size)) {
            let first = px + vec2i(floor(to.px));
            for (var k = 0; k < 4; k++) {
                let there = clamp(first + vec2i(k % 2, k / 2), vec2i(0), size - 1);
                let kept = state_before[2 * (there.y * size.x + there.x) + 1];
                shortest = min(shortest, kept.y);  // a history is as long as that of the noisiest pixel it is made of
                close += i32(abs(to.depth - kept.z) < settings.depth_threshold * max(to.depth, kept.z));
            }
        }
        if (close >= 2) {
            var old = state_before[2 * at];
            var rest = state_before[2 * at + 1];
            if (step.is_static == 0u) {
                old = resampled(px, to.px, size, 0);
                rest = resampled(px, to.px, size, 1);
                rest.y = shortest;
            }
            let running = select(0.0, 1.0 / (rest.y + 1.0), settings.running_mean == 1u);
            let alpha = max(settings.alpha, running);
            let moments_alpha = max(settings.moments_alpha, running);
            mean = vec4f(mix(old.rgb, mean.rgb, alpha), mix(old.w, mean.w, moments_alpha));
            second = mix(rest.x, second, moments_alpha);
            frames = min(rest.y + 1.0, LONGEST_HISTORY);
        }
    }
    state[2 * at] = mean;
    state[2 * at + 1] = vec4f(second, frames, depth, 0.0);
}
