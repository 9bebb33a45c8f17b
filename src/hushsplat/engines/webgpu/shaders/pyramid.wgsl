// A noisy frame as the denoiser reads it: YCoCg and depth, without what is not a number; and the pyramid above it.
// A workgroup is 16×16 px and makes all levels of them.
//!include lib_step

@group(0) @binding(0) var<uniform> step: Step;
@group(0) @binding(1) var<storage, read> observed: array<vec4f>;       // RGB, depth
@group(0) @binding(2) var<storage, read_write> pyramid: array<vec4f>;  // levels 0..3, one after the other; depth in 0

var<workgroup> tile: array<vec3f, 256>;

@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_id) local: vec3u,
        @builtin(local_invocation_index) thread: u32) {
    let size = vec2u(step.width, step.height);
    let px = group.xy * 16u + local.xy;
    if (all(px < size)) {
        let at = px.y * size.x + px.x;
        let seen = usable(observed[at]);
        let color = ycocg_from_rgb(seen.rgb);
        pyramid[at] = vec4f(color, seen.a);
        tile[thread] = color;
    }
    // In place: a texel of a level lies at its first pixel. An odd last row or column is repeated.
    var finer = size;
    var start = size.x * size.y;
    for (var level = 1u; level <= 3u; level++) {
        workgroupBarrier();
        let coarser = (finer + 1u) / 2u;
        let stride = 1u << level;
        let side = 16u >> level;
        let texel = vec2u(thread % side, thread / side);
        let at = (group.xy * 16u) / stride + texel;
        let inside = thread < side * side && all(at < coarser);
        var mean = vec3f(0.0);
        if (inside) {
            let first = texel.y * stride * 16u + texel.x * stride;
            let right = select(0u, stride / 2u, 2u * at.x + 1u < finer.x);
            let below = select(0u, 8u * stride, 2u * at.y + 1u < finer.y);
            mean = 0.25 * (tile[first] + tile[first + right] + tile[first + below] + tile[first + below + right]);
        }
        workgroupBarrier();
        if (inside) {
            tile[texel.y * stride * 16u + texel.x * stride] = mean;
            pyramid[start + at.y * coarser.x + at.x] = vec4f(mean, 0.0);
        }
        start += coarser.x * coarser.y;
        finer = coarser;
    }
}
