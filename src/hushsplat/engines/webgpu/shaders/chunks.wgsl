// One thread a chunk of Gaussians: those whose box may be in the picture are listed, and with them the workgroups of
// the passes that follow. The others are not read.
//!include lib_view

const MARGIN_PX: f32 = 4.0;  // the low-pass (2.4), the dilation (1.9) and rounding

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<storage, read> bounds: array<f32>;                 // lowest and highest corner
@group(0) @binding(3) var<storage, read_write> seen: array<atomic<u32>>;     // workgroups x, y, z, 0; then the chunks

fn may_be_seen(chunk: u32) -> bool {
    let at = 6u * chunk;
    let eye = vec3f(view.eye_x, view.eye_y, view.eye_z);
    let low = vec3f(bounds[at], bounds[at + 1u], bounds[at + 2u]) - eye;
    let high = vec3f(bounds[at + 3u], bounds[at + 4u], bounds[at + 5u]) - eye;
    var nearest = 1e30;
    var farthest = -1e30;
    var from_px = vec2f(1e30);
    var to_px = vec2f(-1e30);
    for (var corner = 0u; corner < 8u; corner++) {
        let p = select(low, high, ((vec3u(corner) >> vec3u(0u, 1u, 2u)) & vec3u(1u)) == vec3u(1u));
        let z = view.r20 * p.x + view.r21 * p.y + view.r22 * p.z;
        nearest = min(nearest, z);
        farthest = max(farthest, z);
        let slope = vec2f(view.r00 * p.x + view.r01 * p.y + view.r02 * p.z,
                          view.r10 * p.x + view.r11 * p.y + view.r12 * p.z) / max(z, 1e-20);
        let px = slope * vec2f(view.fx, view.fy) + vec2f(view.cx, view.cy);
        from_px = min(from_px, px);
        to_px = max(to_px, px);
    }
    if (farthest <= view.near) {
        return false;
    }
    if (nearest <= 1e-4 * farthest) {
        return true;  // reaches behind the eye: may be anywhere
    }
    let size = vec2f(f32(view.width), f32(view.height));
    return !(any(to_px < vec2f(-MARGIN_PX)) || any(from_px > size + MARGIN_PX));
}

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    if (thread.x == 0u) {
        atomicStore(&seen[1], 1u);
        atomicStore(&seen[2], 1u);
    }
    if (thread.x < (page.count + 255u) / 256u && may_be_seen(thread.x)) {
        atomicStore(&seen[4u + atomicAdd(&seen[0], 1u)], thread.x);
    }
}
