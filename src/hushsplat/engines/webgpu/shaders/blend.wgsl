// Sorted blending, front to back: a quad a Gaussian, in the order of the depths of their centres.
//!include lib_quad
//!include lib_stored

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<storage, read> footprints: array<Stored>;
@group(0) @binding(2) var<storage, read> arguments: Arguments;

@vertex
fn vertex(@builtin(vertex_index) number: u32, @builtin(instance_index) instance: u32) -> Varying {
    let drawn = instance * QUADS + number / 4u;
    if (drawn >= arguments.count) {
        return outside();
    }
    let found = footprints[drawn];
    let f = footprint_in(found);
    var out = varying_of(f, corner(f, number % 4u), 0.5, drawn);
    out.extra = vec4f(found.r, found.g, found.b, 0.0);
    return out;
}

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
