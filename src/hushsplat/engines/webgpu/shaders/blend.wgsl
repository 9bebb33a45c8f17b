// Sorted blending, front to back: a quad a Gaussian, in the order of the depths of their centres.
//!include lib_quad
//!include lib_color

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<storage, read> fixed: array<f32>;
@group(0) @binding(3) var<storage, read> order: array<u32>;
@group(0) @binding(4) var<storage, read> draw_arguments: array<u32>;
@group(0) @binding(5) var<storage, read> sh: array<u32>;

@vertex
fn vertex(@builtin(vertex_index) number: u32, @builtin(instance_index) instance: u32) -> Varying {
    let drawn = instance * QUADS + number / 4u;
    if (drawn >= draw_arguments[5]) {
        return outside();
    }
    let index = order[drawn];
    var f: Footprint;
    _ = project(index, &f);
    var out = varying_of(f, corner(f, number % 4u), 0.5, index);
    out.extra = vec4f(color_of(index), 0.0);
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
