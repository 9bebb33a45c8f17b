// The size of the picture of `view`, which whoever includes this binds.
//!include lib_view

fn picture_size() -> vec2i {
    return vec2i(i32(view.width), i32(view.height));
}
