// Remember in which frame a Gaussian won a pixel.
//!include lib_frames

struct Marking {
    pixels: u32,
    frame: u32,
}

@group(0) @binding(0) var<uniform> marking: Marking;
@group(0) @binding(1) var<storage, read> place: array<i32>;
@group(0) @binding(2) var<storage, read_write> won_in: array<atomic<u32>>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let at = thread.x + thread.y * groups.x * 256u;
    if (at < marking.pixels && place[at] >= 0) {
        let winner = u32(place[at]);
        let shift = frame_shift(winner);
        if (((atomicLoad(&won_in[winner / 2u]) >> shift) & FRAMES) != marking.frame) {
            // Who comes between the two writes the same: the other half stays, and this one ends as the frame.
            atomicAnd(&won_in[winner / 2u], ~(FRAMES << shift));
            atomicOr(&won_in[winner / 2u], marking.frame << shift);
        }
    }
}
