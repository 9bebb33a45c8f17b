// Remember in which frame a Gaussian won a pixel, and count the pixels of each tile whose winner is new.
//!include lib_frames
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> membership: Membership;
@group(0) @binding(1) var<storage, read> place: array<i32>;
@group(0) @binding(2) var<storage, read> won_before: array<u32>;               // as won_in was before this frame
@group(0) @binding(3) var<storage, read_write> won_in: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> newcomers: array<atomic<u32>>;  // of each tile

fn picture_size() -> vec2i {
    return vec2i(i32(membership.width), i32(membership.height));
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    if (place[at] < 0) {
        return;
    }
    let winner = u32(place[at]);
    let shift = frame_shift(winner);
    if (membership.is_first == 1u || !is_recent(won_before[winner / 2u] >> shift)) {
        atomicAdd(&newcomers[tile_index(vec2u(px) / TILE)], 1u);
    }
    if (((atomicLoad(&won_in[winner / 2u]) >> shift) & FRAMES) != membership.frame) {
        // Who comes between the two writes the same: the other half stays, and this one ends as the frame.
        atomicAnd(&won_in[winner / 2u], ~(FRAMES << shift));
        atomicOr(&won_in[winner / 2u], membership.frame << shift);
    }
}
