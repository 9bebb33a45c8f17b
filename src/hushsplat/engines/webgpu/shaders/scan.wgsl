// One workgroup: the histogram becomes the place of each bucket's first Gaussian, and the arguments of the draw.
override BUCKETS: u32 = 1024u;

const QUADS: u32 = 128u;  // an instance, as lib_quad.wgsl

@group(0) @binding(0) var<storage, read_write> histogram: array<u32>;
@group(0) @binding(1) var<storage, read_write> draw_arguments: array<u32>;  // of an indexed draw, then the number drawn

var<workgroup> sums: array<u32, 256>;

@compute @workgroup_size(256)
fn main(@builtin(local_invocation_index) thread: u32) {
    let each = (BUCKETS + 255u) / 256u;
    let first = thread * each;
    let end = min(BUCKETS, first + each);
    var sum = 0u;
    for (var k = first; k < end; k++) {
        sum += histogram[k];
    }
    sums[thread] = sum;
    workgroupBarrier();
    for (var step = 1u; step < 256u; step *= 2u) {
        var add = 0u;
        if (thread >= step) {
            add = sums[thread - step];
        }
        workgroupBarrier();
        sums[thread] += add;
        workgroupBarrier();
    }
    var place = sums[thread] - sum;
    for (var k = first; k < end; k++) {
        let count = histogram[k];
        histogram[k] = place;
        place += count;
    }
    if (thread == 255u) {
        let drawn = sums[255];
        draw_arguments[0] = 6u * QUADS;
        draw_arguments[1] = (drawn + QUADS - 1u) / QUADS;
        draw_arguments[2] = 0u;
        draw_arguments[3] = 0u;
        draw_arguments[4] = 0u;
        draw_arguments[5] = drawn;
    }
}
