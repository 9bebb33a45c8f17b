// Which Gaussians are drawn in one go, and the arguments of the indirect draw and dispatch that do it.
const QUADS: u32 = 128u;  // an instance, so that a wave of the vertex stage is full

struct Arguments {
    indices: u32,  // of an instance
    instances: u32,
    first_index: u32,
    base_vertex: u32,
    first_instance: u32,
    groups_x: u32,
    groups_y: u32,
    groups_z: u32,
    first: u32,    // in `order`
    count: u32,
    unused: array<u32, 54>,  // bindings begin at multiples of 256 B
}
