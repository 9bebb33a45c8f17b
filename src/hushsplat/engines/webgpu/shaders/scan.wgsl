// One workgroup: the histogram becomes the place of each bucket's first Gaussian, and the arguments of the draws, which
// take so many Gaussians a round.
//!include lib_arguments

override BUCKETS: u32 = 1024u;
override ROUNDS: u32 = 1u;
override ROUND: u32 = 0u;  // Gaussians of one round; 0: as many in each

@group(0) @binding(0) var<storage, read_write> histogram: array<u32>;
@group(0) @binding(1) var<storage, read_write> arguments: array<Arguments>;  // of each round

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
        var rest = sums[255];
        let most = select(ROUND, (rest + ROUNDS - 1u) / ROUNDS, ROUND == 0u);
        for (var round = 0u; round < ROUNDS; round++) {
            let count = min(rest, most);
            arguments[round].indices = 6u * QUADS;
            arguments[round].instances = (count + QUADS - 1u) / QUADS;
            arguments[round].first_index = 0u;
            arguments[round].base_vertex = 0u;
            arguments[round].first_instance = 0u;
            arguments[round].groups_x = (count + 255u) / 256u;
            arguments[round].groups_y = 1u;
            arguments[round].groups_z = 1u;
            arguments[round].first = sums[255] - rest;
            arguments[round].count = count;
            rest -= count;
        }
    }
}
