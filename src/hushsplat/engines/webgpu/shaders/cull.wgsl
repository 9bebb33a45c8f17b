// One thread a Gaussian of a chunk that may be seen: is it drawn, and in which bucket of its centre's depth.
//!include lib_project
//!include lib_members

override BUCKETS: u32 = 1024u;
override MEMBERS: bool = false;    // only Gaussians that have won a pixel lately, and all where many newcomers win

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<storage, read> fixed: array<u32>;
@group(0) @binding(3) var<storage, read> seen: array<u32>;          // chunks, from 4 on
@group(0) @binding(4) var<storage, read_write> bucket: array<u32>;  // BUCKETS: not drawn
@group(0) @binding(5) var<storage, read_write> histogram: array<atomic<u32>>;
@group(0) @binding(6) var<uniform> membership: Membership;
@group(0) @binding(7) var<storage, read> frames_left: array<u32>;   // as lib_members says
@group(0) @binding(8) var<storage, read> newcomers: array<u32>;     // pixels of each tile

// A member, or in a tile of which the members show too little.
fn is_wanted(index: u32) -> bool {
    let place = page.base + index;
    if (((frames_left[place / 4u] >> byte_shift(place)) & 255u) > 0u) {
        return true;
    }
    let c = rotated(mean_of(index) - vec3f(view.eye_x, view.eye_y, view.eye_z));
    let px = vec2f(view.fx * c.x, view.fy * c.y) / max(c.z, view.near) + vec2f(view.cx, view.cy);
    let tile = tile_of(px);
    let covered = min(vec2u(membership.width, membership.height) - TILE * tile, vec2u(TILE));
    return f32(newcomers[tile_index(tile)]) > membership.most * f32(covered.x * covered.y);
}

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = 256u * seen[4u + group.x] + lane;
    if (index >= page.count) {
        return;
    }
    var f: Footprint;
    if ((MEMBERS && !is_wanted(index)) || !project(index, &f)) {
        bucket[index] = BUCKETS;
        return;
    }
    let place = (-log2(f.inverse_depth) - view.bucket_bias) * view.bucket_scale;
    let found = u32(clamp(place, 0.0, f32(BUCKETS - 1u)));
    bucket[index] = found;
    atomicAdd(&histogram[found], 1u);
}
