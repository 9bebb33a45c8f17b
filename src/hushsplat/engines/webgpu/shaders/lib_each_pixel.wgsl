// One thread a pixel. Whoever includes this has `fn each_pixel(px: vec2i, size: vec2i, at: i32)` and `picture_size()`,
// that of lib_step or lib_picture.
@compute @workgroup_size(16, 16)
fn main(@builtin(global_invocation_id) thread: vec3u) {
    let size = picture_size();
    let px = vec2i(thread.xy);
    if (all(px < size)) {
        each_pixel(px, size, px.y * size.x + px.x);
    }
}
