// One thread a Gaussian of a chunk that may be seen: its place in the order of buckets. Within a bucket the order is
// that of the threads.
//!include lib_view

override BUCKETS: u32 = 1024u;

@group(0) @binding(0) var<uniform> page: Page;
@group(0) @binding(1) var<storage, read> seen: array<u32>;  // chunks, from 4 on
@group(0) @binding(2) var<storage, read> bucket: array<u32>;
@group(0) @binding(3) var<storage, read_write> histogram: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> order: array<u32>;  // places in the scene

@compute @workgroup_size(256)
fn main(@builtin(workgroup_id) group: vec3u, @builtin(local_invocation_index) lane: u32) {
    let index = 256u * seen[4u + group.x] + lane;
    if (index < page.count && bucket[index] < BUCKETS) {
        order[atomicAdd(&histogram[bucket[index]], 1u)] = page.base + index;
    }
}
