// The frame of each Gaussian's last win, 16 bits each: 1 .. 65535 and then from 1 on again, 0: never.
// Whoever includes this binds `membership`.
const FRAMES: u32 = 65535u;
const TILE: u32 = 32u;  // px, as active_set.py

struct Membership {
    width: u32, height: u32,  // of the picture
    frame: u32,     // of this frame
    period: u32,    // frames that a member stays after it has won
    is_first: u32,  // nobody has won before this frame
    most: f32,      // newcomers per pixel of a tile of which members are enough
}

fn frame_shift(place: u32) -> u32 {
    return 16u * (place & 1u);
}

// Whether that frame, in the lower 16 bits, makes a member.
fn is_recent(bits: u32) -> bool {
    let won = bits & FRAMES;
    return won != 0u && (membership.frame + FRAMES - won) % FRAMES < membership.period;
}

// The tile of a place in px; the nearest one if it lies outside of the picture.
fn tile_of(px: vec2f) -> vec2u {
    let size = vec2f(f32(membership.width), f32(membership.height));
    return vec2u(clamp(px, vec2f(0.0), size - 1.0)) / TILE;
}

fn tile_index(tile: vec2u) -> u32 {
    return tile.y * ((membership.width + TILE - 1u) / TILE) + tile.x;
}
