// The quads of what is blended. Whoever includes this binds `view`, `footprints` and `arguments`.
//!include lib_quad
//!include lib_stored

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
