// Who wins a pixel stays a member for the whole period; count the pixels of each tile whose winner is new.
//!include lib_members
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> membership: Membership;
@group(0) @binding(1) var<storage, read> place: array<i32>;
@group(0) @binding(2) var<storage, read> left_before: array<u32>;  // as frames_left was in the frame before
@group(0) @binding(3) var<storage, read_write> frames_left: array<atomic<u32>>;
@group(0) @binding(4) var<storage, read_write> newcomers: array<atomic<u32>>;  // of each tile

fn picture_size() -> vec2i {
    return vec2i(i32(membership.width), i32(membership.height));
}

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    if (place[at] < 0) {
        return;
    }
    let winner = u32(place[at]);
    let shift = byte_shift(winner);
    if (membership.is_first == 1u || ((left_before[winner / 4u] >> shift) & 255u) <= 1u) {
        atomicAdd(&newcomers[tile_index(vec2u(px) / TILE)], 1u);
    }
    if (((atomicLoad(&frames_left[winner / 4u]) >> shift) & 255u) != membership.period) {
        // Who comes between the two writes the same: the other bytes stay, and this one ends as the period.
        atomicAnd(&frames_left[winner / 4u], ~(255u << shift));
        atomicOr(&frames_left[winner / 4u], membership.period << shift);
    }
}
