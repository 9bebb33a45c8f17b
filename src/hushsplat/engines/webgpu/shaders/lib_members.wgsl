// Frames that each Gaussian stays a member, this one included: 8 bits each, four in a word; 0: it is none.
// Whoever includes this binds `membership`.
const TILE: u32 = 32u;  // px, as active_set.py

struct Membership {
    width: u32, height: u32,  // of the picture
    period: u32,    // frames that a member stays from a win on, at most 255
    is_first: u32,  // nobody has won before this frame
    most: f32,      // newcomers per pixel of a tile of which members are enough
}

fn byte_shift(place: u32) -> u32 {
    return 8u * (place & 3u);
}

// The tile of a place in px; the nearest one if it lies outside of the picture.
fn tile_of(px: vec2f) -> vec2u {
    let size = vec2f(f32(membership.width), f32(membership.height));
    return vec2u(clamp(px, vec2f(0.0), size - 1.0)) / TILE;
}

fn tile_index(tile: vec2u) -> u32 {
    return tile.y * ((membership.width + TILE - 1u) / TILE) + tile.x;
}
