// Counts the fragments of the stochastic raster: all, and those in front of what was drawn in the rounds before, which
// are shaded where depth is tested first.
//!include lib_raster

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<uniform> sample: Sample;
@group(0) @binding(3) var<storage, read> fixed: array<u32>;
@group(0) @binding(4) var<storage, read> ids: array<u32>;
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> arguments: Arguments;
@group(0) @binding(7) var nearest: texture_depth_2d;
@group(0) @binding(8) var<storage, read_write> fragments: array<atomic<u32>>;  // of a pixel: tested, shaded

@fragment
fn fragment(in: Varying) {
    let pixel = vec2u(in.position.xy);
    let at = 2u * (pixel.y * view.width + pixel.x);
    atomicAdd(&fragments[at], 1u);
    if (EXACT_DEPTH || in.position.z > textureLoad(nearest, pixel, 0)) {
        atomicAdd(&fragments[at + 1u], 1u);
    }
}
