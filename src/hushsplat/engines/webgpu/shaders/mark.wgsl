// Remember in which frame a Gaussian won a pixel.
struct Marking {
    pixels: u32,
    frame: u32,  // from 1 on
}

@group(0) @binding(0) var<uniform> marking: Marking;
@group(0) @binding(1) var<storage, read> place: array<i32>;
@group(0) @binding(2) var<storage, read_write> won_in: array<atomic<u32>>;  // 0: never

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let at = thread.x + thread.y * groups.x * 256u;
    if (at < marking.pixels && place[at] >= 0) {
        atomicStore(&won_in[place[at]], marking.frame);
    }
}
