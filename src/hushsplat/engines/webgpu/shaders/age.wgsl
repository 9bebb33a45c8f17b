// One thread four Gaussians at a time: each stays a member for one frame less.
@group(0) @binding(0) var<storage, read> left_before: array<u32>;  // as lib_members says
@group(0) @binding(1) var<storage, read_write> frames_left: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u, @builtin(num_workgroups) groups: vec3u) {
    for (var at = thread.x; at < arrayLength(&frames_left); at += 256u * groups.x) {
        let left = left_before[at];
        let is_member = (((left & 0x7f7f7f7fu) + 0x7f7f7f7fu) | left) & 0x80808080u;  // the high bit of bytes above 0
        frames_left[at] = left - (is_member >> 7u);
    }
}
