// Counts the fragments of what is blended: no depth is tested, all are shaded.
//!include lib_blend

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> footprints: array<Stored>;
@group(0) @binding(2) var<storage, read> arguments: Arguments;
@group(0) @binding(3) var<storage, read_write> fragments: array<atomic<u32>>;  // of a pixel: tested, shaded

@fragment
fn fragment(in: Varying) {
    let pixel = vec2u(in.position.xy);
    let at = 2u * (pixel.y * view.width + pixel.x);
    atomicAdd(&fragments[at], 1u);
    atomicAdd(&fragments[at + 1u], 1u);
}
