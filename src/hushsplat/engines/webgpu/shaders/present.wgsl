// A picture as bytes, as io/images.py rounds them: RGBA, one word a pixel.
//!include lib_each_pixel

struct Size {
    width: u32,
    height: u32,
}

@group(0) @binding(0) var<uniform> picture: Size;
@group(0) @binding(1) var<storage, read> color: array<vec4f>;
@group(0) @binding(2) var<storage, read_write> rgba8: array<u32>;

fn picture_size() -> vec2i {
    return vec2i(i32(picture.width), i32(picture.height));
}

fn level(value: f32) -> u32 {
    // WGSL may assume that there is no NaN: its bits tell. Below 0 and NaN are black, all above 1 is white.
    let bits = bitcast<u32>(value);
    return select(u32(clamp(value, 0.0, 1.0) * 255.0 + 0.5), 0u, (bits & 0x7fffffffu) > 0x7f800000u);
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let shown = color[at];
    rgba8[at] = level(shown.r) | (level(shown.g) << 8u) | (level(shown.b) << 16u) | 0xff000000u;
}
