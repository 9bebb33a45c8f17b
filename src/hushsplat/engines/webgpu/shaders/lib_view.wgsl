// The camera of a frame, and one part of a scene.
struct View {
    r00: f32, r01: f32, r02: f32,  // camera from world
    r10: f32, r11: f32, r12: f32,
    r20: f32, r21: f32, r22: f32,
    eye_x: f32, eye_y: f32, eye_z: f32,
    fx: f32, fy: f32, cx: f32, cy: f32,
    near: f32,
    width: u32, height: u32,
    back_r: f32, back_g: f32, back_b: f32,
    bucket_bias: f32,   // log2 of the depth that the first bucket begins at
    bucket_scale: f32,  // buckets per doubling of the depth
}

struct Page {
    base: u32,          // place in the scene of the first Gaussian
    count: u32,
    coefficients: u32,  // of the spherical harmonics
    color_words: u32,   // of a Gaussian
    scale_first: f32,   // log2 of the smallest scale
    scale_step: f32,    // log2 of a scale: first + bits step
}
