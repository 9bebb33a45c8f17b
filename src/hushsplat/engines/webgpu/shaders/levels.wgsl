// The table of keep levels of a `stratified` sample (spec/sampling.py): one thread an entry.
//!include spec
//!include lib_hash

struct Draw {
    seed: u32,
    time: u32,  // t, the place of the sample in the sequence of all samples
}

@group(0) @binding(0) var<uniform> draw: Draw;
@group(0) @binding(1) var<storage, read_write> levels: array<f32>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    let entry = hash_on(hash_on(hash_on(0u, draw.seed), ENTRY_STREAM), thread.x);
    let times = hash_on(hash_on(0u, draw.seed), TIME_STREAM);
    var bits = 0u;
    for (var level = 0u; level < EPOCH_BITS; level++) {
        let salt = hash_on(hash_on(times, level), draw.time >> (level + 1u));
        let flip = mix32((entry + bits * GOLDEN) ^ salt) >> 31u;
        bits = (bits << 1u) | (flip ^ ((draw.time >> level) & 1u));
    }
    let jitter = mix32(entry ^ hash_on(hash_on(times, EPOCH_BITS), draw.time)) >> EPOCH_BITS;
    let k = (bits << (32u - EPOCH_BITS)) | jitter;
    let u = (f32(k >> 8u) + (f32(k & 255u) + 0.5) / 256.0) / 16777216.0;  // (k + ½) / 2³²
    levels[thread.x] = min(-2.0 * log(u), MAX_LEVEL);
}
