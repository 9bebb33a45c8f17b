// The stochastic raster: a fragment is kept if D² lies below its random level, the nearest wins.
//!include lib_raster

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<uniform> sample: Sample;
@group(0) @binding(3) var<storage, read> fixed: array<u32>;
@group(0) @binding(4) var<storage, read> ids: array<u32>;  // index in the file
@group(0) @binding(5) var<storage, read> order: array<u32>;
@group(0) @binding(6) var<storage, read> arguments: Arguments;
@group(0) @binding(7) var<storage, read> levels: array<f32>;

fn kept(in: Varying) -> Fragment {
    var found = fragment_at(footprint_of(in), in.position.xy);
    let pixel = vec2u(in.position.xy);
    let entry = (bitcast<u32>(in.extra.x) + pixel.x + ROW_STEP * pixel.y) & (TABLE_SIZE - 1u);
    found.counts = found.counts && found.q < (levels[entry] + in.h_depth.w) * found.s;
    return found;
}

@fragment
fn plane(in: Varying) -> @location(0) u32 {
    if (!kept(in).counts) {
        discard;
    }
    return in.index;
}

struct Exact {
    @location(0) index: u32,
    @builtin(frag_depth) depth: f32,
}

@fragment
fn exact(in: Varying) -> Exact {
    let found = kept(in);
    if (!found.counts) {
        discard;
    }
    return Exact(in.index, found.inverse_depth * view.near);
}
