// Passes 5 and 6: smooth, gate, stabilise.
// A workgroup is 16×16 px; composites reach 1 px further, the means that they are made of 2 px.
//!include lib_step

override DETAILS: bool = false;  // also write what the views show

struct Gate {
    gamma: f32,
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: DenoiserSettings;
@group(0) @binding(2) var<uniform> gate: Gate;
@group(0) @binding(3) var<storage, read> state: array<vec4f>;
@group(0) @binding(4) var<storage, read> history: array<vec4f>;
@group(0) @binding(5) var<storage, read> motion_px: array<vec2f>;
@group(0) @binding(6) var<storage, read_write> shown: array<vec4f>;
@group(0) @binding(7) var<storage, read_write> details: array<vec4f>;  // 4 a pixel: trust.wgsl; composite and gate, smoothed

const TINY: f32 = 1e-12;
const FRAMES_EPSILON: f32 = 1e-4;
const LEAST_DIFFERENCE: f32 = 0.01;  // luma; a neighbour that differs by this weighs 1/e even if the mean is certain

var<workgroup> means: array<vec4f, 400>;  // YCoCg, Y²
var<workgroup> composites: array<vec3f, 324>;

struct Composite {
    color: vec3f,     // RGB
    smoothed: vec3f,  // YCoCg
    gate: f32,
}

// Of the luma over a pixel's history, of short histories in part that over 3×3 pixels: one frame has none.
fn variance_at(middle: u32, earlier: f32) -> f32 {
    let mean = means[middle];
    let own = max(mean.w - mean.x * mean.x, 0.0);
    if (settings.pooled_frames == 0.0) {
        return own;
    }
    var sum = vec4f(0.0);
    for (var j = 0u; j < 3u; j++) {
        for (var i = 0u; i < 3u; i++) {
            sum += means[middle + 20u * j + i - 21u];
        }
    }
    sum /= 9.0;
    let share = clamp(1.0 - earlier / settings.pooled_frames, 0.0, 1.0);
    return own + share * (max(sum.w - sum.x * sum.x, 0.0) - own);
}

// `middle` is the entry of the pixel in `means`.
fn composite_at(at: i32, middle: u32) -> Composite {
    let mean = means[middle].xyz;
    let earlier = state[3 * at + 1].x - 1.0;  // frames of the mean before this one
    let variance = variance_at(middle, earlier);
    let error = variance / sqrt((variance + max(settings.error_floor, TINY)) * (earlier + FRAMES_EPSILON));
    var smoothed = mean;
    if (settings.smooth_ == 1u) {
        let scale = 1.0 / (settings.smooth_errors * error + LEAST_DIFFERENCE);
        var change = vec3f(0.0);
        var total = 1.0;
        for (var j = 0u; j < 3u; j++) {
            for (var i = 0u; i < 3u; i++) {
                if (i != 1u || j != 1u) {
                    let there = means[middle + 20u * j + i - 21u].xyz - mean;
                    let linear = max(1.0 - abs(there.x) * scale / 8.0, 0.0);
                    let squared = linear * linear;
                    let weight = (squared * squared) * (squared * squared);
                    change += weight * there;
                    total += weight;
                }
            }
        }
        smoothed += change / total;
    }
    var share = select(0.0, 1.0, settings.gate == GATE_ONE);
    if (settings.gate == GATE_LEARNED) {
        let ripe = 1.0 - exp(-earlier / settings.tau_frames);
        share = 1.0 - ripe * (1.0 - clamp(gate.gamma * error, 0.0, 1.0));
    }
    let denoised = state[3 * at + 2].xyz;
    return Composite(rgb_from_ycocg(smoothed + share * (denoised - smoothed)), smoothed, share);
}

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u,
        @builtin(local_invocation_index) thread: u32) {
    let size = vec2i(i32(step.width), i32(step.height));
    let origin = vec2i(group.xy) * 16;
    for (var k = thread; k < 400u; k += 256u) {
        let px = clamp(origin + vec2i(i32(k % 20u), i32(k / 20u)) - 2, vec2i(0), size - 1);
        means[k] = state[3 * (px.y * size.x + px.x)];
    }
    workgroupBarrier();
    for (var k = thread; k < 324u; k += 256u) {
        // Outside of the picture its edge counts again.
        let px = clamp(origin + vec2i(i32(k % 18u), i32(k / 18u)) - 1, vec2i(0), size - 1);
        let in_tile = px - origin + 2;
        composites[k] = composite_at(px.y * size.x + px.x, u32(in_tile.y * 20 + in_tile.x)).color;
    }
    workgroupBarrier();
    let px = origin + vec2i(local.xy);
    if (any(px >= size)) {
        return;
    }
    let at = px.y * size.x + px.x;
    let middle = (local.y + 1u) * 18u + local.x + 1u;
    let composite = composites[middle];
    var color = composite;
    if (settings.stabilise == 1u && step.is_static == 0u) {
        var low = composite;
        var high = composite;
        for (var j = 0u; j < 3u; j++) {
            for (var i = 0u; i < 3u; i++) {
                let there = composites[middle + 18u * j + i - 19u];
                low = min(low, there);
                high = max(high, there);
            }
        }
        let tolerance = 0.5 * (high - low) + settings.stabilise_slack;
        let reprojected = history[4 * at + 3];
        let before = clamp(reprojected.xyz, composite - tolerance, composite + tolerance);
        let gap = abs(composite - before);
        let close = max(gap.x, max(gap.y, gap.z)) < settings.stabilise_rescue;
        let kept = reprojected.w >= 0.0 && (reprojected.w <= settings.stabilise_depth || close);
        let distance = length(motion_px[at]);
        let slow = 1.0 - distance / (distance + settings.stabilise_motion_px);
        color += (before - composite) * select(0.0, settings.stabilise_weight * slow, kept);
    }
    shown[at] = vec4f(max(color, vec3f(0.0)), 0.0);
    if (DETAILS) {
        let parts = composite_at(at, (local.y + 2u) * 20u + local.x + 2u);
        details[4 * at + 2] = vec4f(parts.color, parts.gate);
        details[4 * at + 3] = vec4f(rgb_from_ycocg(parts.smoothed), 0.0);
    }
}
