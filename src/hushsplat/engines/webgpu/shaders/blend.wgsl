// Sorted blending, front to back: a quad a Gaussian, in the order of the depths of their centres.
//!include lib_blend

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> footprints: array<Stored>;
@group(0) @binding(2) var<storage, read> arguments: Arguments;

struct Blended {
    @location(0) color: vec4f,  // premultiplied RGB, alpha
    @location(1) depth: vec4f,  // premultiplied depth, alpha
}

@fragment
fn fragment(in: Varying) -> Blended {
    let found = fragment_at(footprint_of(in), in.position.xy);
    let log_opacity = in.h_depth.w;
    if (!found.counts || !(found.q < (log_opacity + MAX_LEVEL) * found.s)) {
        discard;
    }
    let alpha = exp(0.5 * (log_opacity - found.q / found.s));
    return Blended(vec4f(in.extra.xyz * alpha, alpha), vec4f(alpha / found.inverse_depth, 0.0, 0.0, alpha));
}
