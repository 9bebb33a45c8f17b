// Who won each pixel, and the winner's own depth there: the plane of the quad only decides who wins.
//!include lib_project
//!include lib_picture
//!include lib_each_pixel

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<storage, read> fixed: array<u32>;
@group(0) @binding(3) var drawn: texture_2d<u32>;
@group(0) @binding(4) var<storage, read_write> place: array<i32>;  // in the scene, -1: nothing
@group(0) @binding(5) var<storage, read_write> depth: array<f32>;  // 0: nothing

fn each_pixel(px: vec2i, size: vec2i, at: i32) {
    let winner = textureLoad(drawn, px, 0).x;
    if (winner == 0xffffffffu) {
        place[at] = -1;
        depth[at] = 0.0;
        return;
    }
    if (winner - page.base >= page.count) {
        return;  // of another page
    }
    var f: Footprint;
    _ = project(winner - page.base, &f);
    place[at] = i32(winner);
    depth[at] = 1.0 / fragment_at(f, vec2f(px) + 0.5).inverse_depth;
}
