// The mean of all frames since the camera stopped (Ref. N).
//!include lib_step

struct Length {
    frames: u32,  // with this one
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> run: Length;
@group(0) @binding(2) var<storage, read> observed: array<vec4f>;
@group(0) @binding(3) var<storage, read> state_before: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> state: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> shown: array<vec4f>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    if (thread.x >= step.width || thread.y >= step.height) {
        return;
    }
    let at = thread.y * step.width + thread.x;
    var mean = usable(observed[at]).rgb;
    if (run.frames > 1u) {
        let before = state_before[at].rgb;
        mean = before + (mean - before) / f32(run.frames);
    }
    state[at] = vec4f(mean, 0.0);
    shown[at] = vec4f(max(mean, vec3f(0.0)), 0.0);
}
