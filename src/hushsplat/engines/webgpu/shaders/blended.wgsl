// A blended picture before its background, and the mean of its depths.
//!include lib_view

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var colors: texture_2d<f32>;
@group(0) @binding(2) var depths: texture_2d<f32>;
@group(0) @binding(3) var<storage, read_write> picture: array<vec4f>;  // RGB, depth
@group(0) @binding(4) var<storage, read_write> alpha: array<f32>;

@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    if (thread.x >= view.width || thread.y >= view.height) {
        return;
    }
    let at = thread.y * view.width + thread.x;
    let color = textureLoad(colors, vec2i(thread.xy), 0);
    let depth = textureLoad(depths, vec2i(thread.xy), 0);
    let background = vec3f(view.back_r, view.back_g, view.back_b);
    picture[at] = vec4f(color.rgb + (1.0 - color.a) * background, select(0.0, depth.r / depth.a, depth.a > 0.0));
    alpha[at] = color.a;
}
