// ST-TAA: running means of colour and position; history that landed elsewhere than what is seen now is dropped.
//!include lib_forward
//!include lib_reproject
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> settings: StTaaSettings;
@group(0) @binding(2) var<storage, read> observed: array<vec4f>;
@group(0) @binding(3) var<storage, read> state_before: array<vec4f>;
@group(0) @binding(4) var<storage, read> came_from: array<u32>;
@group(0) @binding(5) var<storage, read_write> state: array<vec4f>;
@group(0) @binding(6) var<storage, read_write> shown: array<vec4f>;

fn depth_at(px: vec2i) -> f32 {
    return usable(observed[px.y * i32(step.width) + px.x]).a;
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let depth = filled_depth(px, size);
    let ray = (vec2f(px) + 0.5 - vec2f(step.cx, step.cy)) / vec2f(step.fx, step.fy);
    let position = vec3f(ray, 1.0) * depth;
    var old = vec4f(0.0);  // mean, history length
    var old_position = vec3f(0.0);
    if (step.has_history == 1u && step.is_static == 1u) {
        old = state_before[2 * at];
        old_position = state_before[2 * at + 1].xyz;
    } else if (step.has_history == 1u && came_from[at] != 0u) {
        let source = ~came_from[at];
        old = state_before[2u * source];
        old_position = forward_point(state_before[2u * source + 1u].xyz);
        old.w = select(0.0, old.w, distance(old_position, position) < settings.reach);
    }
    let total = old.w + 1.0;
    let mean = old.rgb + (usable(observed[at]).rgb - old.rgb) / total;
    state[2 * at] = vec4f(mean, min(total, settings.cap_frames));
    state[2 * at + 1] = vec4f(old_position + (position - old_position) / total, 0.0);
    shown[at] = vec4f(max(mean, vec3f(0.0)), 0.0);
}
