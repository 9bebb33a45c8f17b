// ST-TAA's warp: every pixel of the frame before goes to the pixel that its mean position falls into now. Of several
// the nearest stays, of equals the first: run once for the depths, then once more for who has that depth.
//!include lib_forward
//!include lib_each_pixel

override WHO: bool = false;

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> state_before: array<vec4f>;             // 2 a pixel: mean and length, position
@group(0) @binding(2) var<storage, read_write> nearest: array<atomic<u32>>;      // bits of the depth, inverted; 0: none
@group(0) @binding(3) var<storage, read_write> came_from: array<atomic<u32>>;    // index of the pixel, inverted; 0: none

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let source = u32(at);
    let p = forward_point(state_before[2u * source + 1u].xyz);
    if (!(p.z > NEAREST_DEPTH)) {
        return;
    }
    let place = vec2f(p.x / p.z * step.fx + step.cx, p.y / p.z * step.fy + step.cy);
    if (!all(place >= vec2f(0.0)) || !all(place < vec2f(size))) {
        return;
    }
    let to = u32(place.y) * step.width + u32(place.x);
    let depth = ~bitcast<u32>(p.z);
    if (!WHO) {
        atomicMax(&nearest[to], depth);
    } else if (atomicLoad(&nearest[to]) == depth) {
        atomicMax(&came_from[to], ~source);
    }
}
