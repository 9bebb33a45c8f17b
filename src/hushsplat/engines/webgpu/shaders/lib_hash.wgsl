// Random numbers: the 32-bit hashes of spec/sampling.py.
fn mix32(value: u32) -> u32 {
    var x = value;
    x ^= x >> 16u;
    x *= 0x7feb352du;
    x ^= x >> 15u;
    x *= 0x846ca68bu;
    return x ^ (x >> 16u);
}

fn hash_on(state: u32, word: u32) -> u32 {
    return mix32(state + word + GOLDEN);
}
