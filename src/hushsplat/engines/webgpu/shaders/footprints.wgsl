// One thread a place in the sorted order: the footprint and the colour of that Gaussian, for the quads of `blend`.
// Runs once for each page; each Gaussian is of one of them.
//!include lib_project
//!include lib_color
//!include lib_stored
//!include lib_arguments

@group(0) @binding(0) var<uniform> view: View;
@group(0) @binding(1) var<uniform> page: Page;
@group(0) @binding(2) var<storage, read> fixed: array<u32>;
@group(0) @binding(3) var<storage, read> sh: array<u32>;
@group(0) @binding(4) var<storage, read> order: array<u32>;
@group(0) @binding(5) var<storage, read> arguments: Arguments;
@group(0) @binding(6) var<storage, read_write> footprints: array<Stored>;

@compute @workgroup_size(256)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    if (thread.x >= arguments.count) {
        return;
    }
    let index = order[arguments.first + thread.x] - page.base;
    if (index >= page.count) {
        return;  // of another page
    }
    var f: Footprint;
    _ = project(index, &f);
    footprints[thread.x] = stored(f, color_of(index));
}
