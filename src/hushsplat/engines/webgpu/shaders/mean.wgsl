// The mean of all frames since the camera stopped (Ref. N).
//!include lib_step
//!include lib_each_pixel

struct Length {
    frames: u32,  // with this one
}

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<uniform> run: Length;
@group(0) @binding(2) var<storage, read> observed: array<vec4f>;
@group(0) @binding(3) var<storage, read> state_before: array<vec4f>;
@group(0) @binding(4) var<storage, read_write> state: array<vec4f>;
@group(0) @binding(5) var<storage, read_write> shown: array<vec4f>;

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    var mean = usable(observed[at]).rgb;
    if (run.frames > 1u) {
        let before = state_before[at].rgb;
        mean = before + (mean - before) / f32(run.frames);
    }
    state[at] = vec4f(mean, 0.0);
    shown[at] = vec4f(max(mean, vec3f(0.0)), 0.0);
}
