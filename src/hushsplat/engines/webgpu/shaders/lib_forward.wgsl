// Where a point that the previous camera saw is now. `step` holds current from previous, less the identity.
//!include lib_step

fn forward_point(p: vec3f) -> vec3f {
    return p + vec3f(step.m00 * p.x + step.m01 * p.y + step.m02 * p.z + step.m03,
                     step.m10 * p.x + step.m11 * p.y + step.m12 * p.z + step.m13,
                     step.m20 * p.x + step.m21 * p.y + step.m22 * p.z + step.m23);
}
