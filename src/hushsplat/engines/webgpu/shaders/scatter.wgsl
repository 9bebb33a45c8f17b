// One thread a Gaussian: its place in the order of buckets. Within a bucket the order is that of the threads.
//!include lib_view

override BUCKETS: u32 = 1024u;

@group(0) @binding(0) var<uniform> page: Page;
@group(0) @binding(1) var<storage, read> bucket: array<u32>;
@group(0) @binding(2) var<storage, read_write> histogram: array<atomic<u32>>;
@group(0) @binding(3) var<storage, read_write> order: array<u32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u, @builtin(num_workgroups) groups: vec3u) {
    let index = thread.x + thread.y * groups.x * 256u;
    if (index >= page.count) {
        return;
    }
    let found = bucket[index];
    if (found < BUCKETS) {
        order[atomicAdd(&histogram[found], 1u)] = index;
    }
}
