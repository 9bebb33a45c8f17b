// Passes 2 to 4: history weights of both paths, the filter, the running means.
// A workgroup is 16×16 px; the features that the networks read reach 2 px further.
//!include lib_step

override DETAILS: bool = false;  // also write what the views show

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: DenoiserSettings;
@group(0) @binding(2) var<uniform> weights: array<vec4f, 138>;         // every layer begins at a whole vec4f
@group(0) @binding(3) var<storage, read> pyramid: array<vec4f>;
@group(0) @binding(4) var<storage, read> history: array<vec4f>;
@group(0) @binding(5) var<storage, read> motion_px: array<vec2f>;
@group(0) @binding(6) var<storage, read> neural_view: array<vec4f>;
@group(0) @binding(7) var<storage, read_write> state: array<vec4f>;    // as reproject.wgsl reads it
@group(0) @binding(8) var<storage, read_write> details: array<vec4f>;  // 4 a pixel: filtered RGB, ellipse; compose.wgsl

const ZERO_SHOT_SCALE_PX: f32 = 2.0;  // paper, "Zero-Shot Transfer": a_x = a_y
const LARGEST_VIEW: f32 = 1e4;
const SMALLEST_AXIS_PX: f32 = 1e-4;

struct Eight {  // channels
    a: vec4f,
    b: vec4f,
}
const NO_CHANNELS = Eight(vec4f(0.0), vec4f(0.0));

var<workgroup> tile: array<Eight, 400>;

// By their place in spec.wgsl; the single bias of the first head is followed by three zeros.
fn four_weights(at: u32) -> vec4f {
    return weights[select(at, at + 3u, at > WEIGHTS_HEAD_BIAS) / 4u];
}

fn sigmoid(x: vec4f) -> vec4f {
    return 1.0 / (1.0 + exp(-clamp(x, vec4f(-60.0), vec4f(60.0))));
}

fn silu(x: vec4f) -> vec4f {
    return x * sigmoid(x);
}

// Weights lie [input][output].
fn pointwise(v: Eight, at: u32, bias: u32) -> Eight {
    var sum = Eight(four_weights(bias), four_weights(bias + 4u));
    for (var c = 0u; c < 4u; c++) {
        sum.a += v.a[c] * four_weights(at + 8u * c) + v.b[c] * four_weights(at + 32u + 8u * c);
        sum.b += v.a[c] * four_weights(at + 8u * c + 4u) + v.b[c] * four_weights(at + 36u + 8u * c);
    }
    return Eight(silu(sum.a), silu(sum.b));
}

// Weights lie [tap][channel]; `first` is the tile's entry of the first tap.
fn depthwise(first: u32, stride: u32, at: u32, bias: u32) -> Eight {
    var sum = Eight(four_weights(bias), four_weights(bias + 4u));
    for (var j = 0u; j < 3u; j++) {
        for (var i = 0u; i < 3u; i++) {
            let tap = tile[first + j * stride + i];
            let place = at + 8u * (3u * j + i);
            sum.a += tap.a * four_weights(place);
            sum.b += tap.b * four_weights(place + 4u);
        }
    }
    return sum;
}

fn head(v: Eight, at: u32, bias: u32) -> f32 {
    let sum = dot(v.a, four_weights(at)) + dot(v.b, four_weights(at + 4u)) + four_weights(bias).x;
    return sigmoid(vec4f(sum)).x;
}

fn view_at(at: i32) -> vec4f {
    var v = neural_view[at];
    for (var k = 0; k < 4; k++) {
        v[k] = select(0.0, clamp(v[k], -LARGEST_VIEW, LARGEST_VIEW), is_within(v[k], 3.4e38));
    }
    return v;
}

fn compressed_motion(at: i32) -> f32 {
    let distance = length(motion_px[at]);
    return distance / (distance + settings.motion_scale_px);
}

fn relative_depth_at(at: i32) -> f32 {
    let r = history[4 * at + 3].w;
    return select(r, 1.0, r < 0.0);
}

// What t_s is predicted from, in the order of the paper's first table of inputs.
fn accumulated_features(at: i32) -> Eight {
    let c = compressed_motion(at);
    let r = relative_depth_at(at);
    let lengths = history[4 * at + 1];
    var forward = 0.0;
    if (settings.zero_shot == 0u) {
        forward = view_at(at).z;
    }
    let change = abs(pyramid[at].x - history[4 * at].x);
    return Eight(vec4f(change, lengths.y, c * c, lengths.x / settings.accumulated_cap_frames), vec4f(c, r, c * r, forward));
}

// What t_h is predicted from, in the order of the paper's second table of inputs.
fn denoised_features(at: i32) -> Eight {
    let c = compressed_motion(at);
    let lengths = history[4 * at + 1];
    let denoised = history[4 * at + 2].xyz;
    let difference = pyramid[at].xyz - denoised;
    return Eight(vec4f(abs(difference.x), denoised.x, lengths.w, lengths.z / settings.denoised_cap_frames),
                 vec4f(c, length(difference), relative_depth_at(at), c * c));
}

// How many frames make up `history_px` at this motion, at most the cap: 1 / (1 / cap + m / history_px).
fn least_frames(at: i32) -> f32 {
    let c = compressed_motion(at);
    let cap = settings.accumulated_cap_frames;
    let steady = (1.0 - c) * settings.history_px;
    return cap * steady / max(steady + cap * settings.motion_scale_px * c, 1e-6);
}

// The share of a history that is kept: t itself, or what leaves min(n, N) frames of n, N = t / (1 - t).
fn used_trust(trust: f32, frames: f32, least: f32) -> f32 {
    if (settings.history == HISTORY_SHARE) {
        return trust;
    }
    let length = max(trust / max(1.0 - trust, 1e-6), least);
    return length / max(max(frames, length), 1e-6);
}

struct Ellipse {
    major: f32,  // px
    minor: f32,
    axis: vec2f, // direction of the major one
}

// Of the covariance [scale_x z; z scale_y], z = correlation √(scale_x scale_y).
fn ellipse_of(scale_x: f32, scale_y: f32, correlation: f32) -> Ellipse {
    let covariance = correlation * sqrt(scale_x * scale_y + 1e-8);
    let mean = 0.5 * (scale_x + scale_y);
    let half_difference = 0.5 * (scale_x - scale_y);
    let radius = sqrt(half_difference * half_difference + covariance * covariance + 1e-12) - 1e-6;
    let minor = max(mean - radius, SMALLEST_AXIS_PX);
    let along_x = half_difference + settings.filter_lean * mean;
    let long_side = sqrt(along_x * along_x + covariance * covariance + 1e-12) + abs(along_x);
    let axis = select(vec2f(covariance, long_side), vec2f(long_side, covariance), along_x >= 0.0);
    return Ellipse(max(mean + radius, minor), minor, axis / sqrt(long_side * long_side + covariance * covariance));
}

fn softplus(x: f32) -> f32 {
    return max(x, 0.0) + log(1.0 + exp(-abs(x)));
}

fn ellipse_at(px: vec2i, size: vec2i) -> Ellipse {
    if (settings.zero_shot == 1u) {
        return ellipse_of(ZERO_SHOT_SCALE_PX, ZERO_SHOT_SCALE_PX, 0.0);
    }
    var v = vec4f(0.0);  // [1 2 1]ᵀ[1 2 1] / 16, edges repeated
    for (var j = -1; j <= 1; j++) {
        for (var i = -1; i <= 1; i++) {
            let at = clamp(px + vec2i(i, j), vec2i(0), size - 1);
            v += view_at(at.y * size.x + at.x) * f32((2 - abs(i)) * (2 - abs(j))) / 16.0;
        }
    }
    let least = softplus(v.w);
    return ellipse_of(max(v.y, 0.0) + least, max(v.x, 0.0) + least, tanh(v.z));
}

struct Level {
    size: vec2i,
    start: i32,
}

fn level_of(number: u32) -> Level {
    var found = Level(vec2i(i32(step.width), i32(step.height)), 0);
    for (var k = 0u; k < number; k++) {
        found.start += found.size.x * found.size.y;
        found.size = (found.size + 1) / 2;
    }
    return found;
}

fn texel(level: Level, at: vec2i) -> vec3f {
    return pyramid[level.start + at.y * level.size.x + at.x].xyz;
}

// At the pixel's centre plus an offset in px of level 0. The integer place is kept apart from the small offset, so that
// rounding does not grow with the picture.
fn bilinear(px: vec2i, offset: vec2f, number: u32) -> vec3f {
    let level = level_of(number);
    let own = px >> vec2u(number);
    let rest = px - (own << vec2u(number));
    let place = (vec2f(rest) + 0.5 + offset) / f32(1u << number) - 0.5;
    let before = floor(place);
    let part = place - before;
    let low = clamp(own + vec2i(before), vec2i(0), level.size - 1);
    let high = clamp(own + vec2i(before) + 1, vec2i(0), level.size - 1);
    let above = mix(texel(level, low), texel(level, vec2i(high.x, low.y)), part.x);
    let below = mix(texel(level, vec2i(low.x, high.y)), texel(level, high), part.x);
    return mix(above, below, part.y);
}

// Four probes along the major axis, from the levels that fit the minor one.
fn filtered_at(px: vec2i, ellipse: Ellipse) -> vec3f {
    let level = clamp(log2(ellipse.minor), 0.0, 3.0);
    let fine = min(floor(level), 2.0);
    let ratio = ellipse.minor / ellipse.major;
    var sum = vec3f(0.0);
    var total = 0.0;
    for (var k = 0; k < 4; k++) {
        let probe = f32(k) - 1.5;  // in units of the minor axis
        let weight = exp(-0.5 * (probe * ratio) * (probe * ratio));
        let offset = probe * ellipse.minor * ellipse.axis;
        sum += weight * mix(bilinear(px, offset, u32(fine)), bilinear(px, offset, u32(fine) + 1u), level - fine);
        total += weight;
    }
    return sum / total;
}

fn is_inside(px: vec2i, size: vec2i) -> bool {
    return all(px >= vec2i(0)) && all(px < size);
}

// t_s by the network. Outside of the picture each layer's input is 0.
fn learned_trust(origin: vec2i, size: vec2i, thread: u32, first: u32) -> f32 {
    for (var k = thread; k < 400u; k += 256u) {
        let px = origin + vec2i(i32(k % 20u), i32(k / 20u)) - 2;
        tile[k] = NO_CHANNELS;
        if (is_inside(px, size)) {
            tile[k] = pointwise(accumulated_features(px.y * size.x + px.x), WEIGHTS_ENCODE, WEIGHTS_ENCODE_BIAS);
        }
    }
    workgroupBarrier();
    var kept = array<Eight, 2>(NO_CHANNELS, NO_CHANNELS);
    for (var round = 0u; round < 2u; round++) {
        let k = thread + 256u * round;
        let px = origin + vec2i(i32(k % 18u), i32(k / 18u)) - 1;
        if (k < 324u && is_inside(px, size)) {
            let spread = depthwise((k / 18u) * 20u + k % 18u, 20u, WEIGHTS_DEPTHWISE1, WEIGHTS_DEPTHWISE1_BIAS);
            let hidden = pointwise(spread, WEIGHTS_POINT1, WEIGHTS_POINT1_BIAS);
            kept[round] = pointwise(hidden, WEIGHTS_POINT2, WEIGHTS_POINT2_BIAS);
        }
    }
    workgroupBarrier();
    for (var round = 0u; round < 2u; round++) {
        let k = thread + 256u * round;
        if (k < 324u) {
            tile[k] = kept[round];
        }
    }
    workgroupBarrier();
    let spread = depthwise(first, 18u, WEIGHTS_DEPTHWISE2, WEIGHTS_DEPTHWISE2_BIAS);
    let trust = head(pointwise(spread, WEIGHTS_POINT3, WEIGHTS_POINT3_BIAS), WEIGHTS_HEAD, WEIGHTS_HEAD_BIAS);
    workgroupBarrier();
    return trust;
}

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u,
        @builtin(local_invocation_index) thread: u32) {
    let size = vec2i(i32(step.width), i32(step.height));
    let origin = vec2i(group.xy) * 16;
    let first = local.y * 18u + local.x;
    var trust_s = 1.0;
    if (settings.trust == TRUST_LEARNED && step.is_static == 0u) {
        trust_s = learned_trust(origin, size, thread, first);
    }
    for (var k = thread; k < 324u; k += 256u) {
        let px = origin + vec2i(i32(k % 18u), i32(k / 18u)) - 1;
        tile[k] = NO_CHANNELS;
        if (is_inside(px, size)) {
            tile[k] = denoised_features(px.y * size.x + px.x);
        }
    }
    workgroupBarrier();
    let spread = depthwise(first, 18u, WEIGHTS_DENOISED_DEPTHWISE, WEIGHTS_DENOISED_DEPTHWISE_BIAS);
    let shaped = Eight(silu(spread.a), silu(spread.b));
    var trust_h = head(shaped, WEIGHTS_DENOISED_HEAD, WEIGHTS_DENOISED_HEAD_BIAS);

    let px = origin + vec2i(local.xy);
    if (any(px >= size)) {
        return;
    }
    let at = px.y * size.x + px.x;
    let lengths = history[4 * at + 1];
    if (step.is_static == 0u) {
        if (settings.trust == TRUST_HEURISTIC) {
            trust_s = exp(-settings.sigma * relative_depth_at(at));
        } else if (settings.trust == TRUST_CONSTANT) {
            trust_s = settings.constant_trust;
        }
    }
    trust_s = used_trust(trust_s, lengths.x, least_frames(at));
    trust_h = used_trust(trust_h, lengths.z, 0.0);
    if (history[4 * at + 3].w < 0.0) {
        trust_s = 0.0;
        trust_h = 0.0;
    }
    let ellipse = ellipse_at(px, size);
    let color = pyramid[at].xyz;
    var filtered = color;
    if (settings.spatial_filter == 1u) {
        filtered = filtered_at(px, ellipse);
    }
    // Trust-weighted running means of this frame's and the filtered colours, and of the squared luma.
    let denoised = history[4 * at + 2];
    let moments = vec4f(color, color.x * color.x);
    let kept_s = lengths.x * trust_s;
    let kept_h = lengths.z * trust_h;
    state[3 * at] = moments + (history[4 * at] - moments) * (kept_s / (kept_s + 1.0));
    state[3 * at + 1] = vec4f(min(kept_s + 1.0, settings.accumulated_cap_frames), trust_s,
                              min(kept_h + 1.0, settings.denoised_cap_frames), trust_h);
    state[3 * at + 2] = vec4f(filtered + (denoised.xyz - filtered) * (kept_h / (kept_h + 1.0)), denoised.w);
    if (DETAILS) {
        details[4 * at] = vec4f(rgb_from_ycocg(filtered), 0.0);
        details[4 * at + 1] = vec4f(ellipse.major, ellipse.minor, ellipse.axis);
    }
}
