// A blended picture before its background, and the mean of its depths.
//!include lib_view
//!include lib_picture
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var colors: texture_2d<f32>;
@group(0) @binding(2) var depths: texture_2d<f32>;
@group(0) @binding(3) var<storage, read_write> picture: array<vec4f>;  // RGB, depth
@group(0) @binding(4) var<storage, read_write> alpha: array<f32>;

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let color = textureLoad(colors, px, 0);
    let depth = textureLoad(depths, px, 0);
    let background = vec3f(view.back_r, view.back_g, view.back_b);
    picture[at] = vec4f(color.rgb + (1.0 - color.a) * background, select(0.0, depth.r / depth.a, depth.a > 0.0));
    alpha[at] = color.a;
}
