// A Gaussian's footprint in the picture, as native/project.cpp computes it.
// Whoever includes this binds `view`, `page` and `fixed`.
//!include lib_gaussian
//!include lib_footprint

override ANTIALIASED: bool = false;  // trained with Mip-Splatting's screen-space filter

const DILATION: f32 = 0.3;    // px²: what 3DGS adds to a projected covariance

fn rotated(v: vec3f) -> vec3f {
    return vec3f(view.r00 * v.x + view.r01 * v.y + view.r02 * v.z,
                 view.r10 * v.x + view.r11 * v.y + view.r12 * v.z,
                 view.r20 * v.x + view.r21 * v.y + view.r22 * v.z);
}

// Least and largest slope x / z of the ellipsoid D² <= level around (x, z), as far as it lies behind the near plane.
// Slopes of tangents through the eye solve m b² - 2 g b + gxx = 0; `disc` = g² - m gxx.
fn slopes(x: f32, z: f32, xx: f32, xz: f32, zz: f32, level: f32, disc: f32) -> vec2f {
    let m = level * zz - z * z;
    let g = level * xz - x * z;
    let root = sqrt(max(disc, 0.0));
    let a = (g + root) / m;
    let b = (g - root) / m;
    if (z - sqrt(level * zz) > view.near) {
        return vec2f(min(a, b), max(a, b));
    }
    // Cut by the near plane: the ends are tangent points behind it, or lie on the cut itself.
    var low = 1e9;
    var high = -1e9;
    for (var k = 0; k < 2; k++) {
        let slope = select(a, b, k == 1);
        let lx = xx - slope * xz;
        let lz = xz - slope * zz;
        let at = z - (x - slope * z) * lz / max(lx - slope * lz, 1e-30);
        if (disc >= 0.0 && at > view.near * 0.999) {
            low = min(low, slope);
            high = max(high, slope);
        }
    }
    let back = view.near - z;
    let izz = 1.0 / max(zz, 1e-30);
    let middle = x + xz * izz * back;
    let half_width = sqrt(max((level - back * back * izz) * (xx - xz * xz * izz), 0.0));
    return vec2f(min(low, (middle - half_width) / view.near), max(high, (middle + half_width) / view.near));
}

// Least and largest slopes of what can be seen of it.
struct Reach {
    xs: vec2f,  // x / z
    ys: vec2f,
}

fn surfel(index: u32, c: vec3f, level: f32, out: ptr<function, Footprint>) -> Reach {
    let axes = surfel_axes(index);
    let a = rotated(axes[0]);
    let b = rotated(axes[1]);
    let n = cross(a, b);
    let bc = cross(b, c);
    let ca = cross(c, a);
    let nc = dot(n, c);
    // Seen edge-on the plane is no help: the low-pass decides everywhere.
    let edge_on = nc * nc <= 1e-10 * dot(n, n) * dot(c, c);
    let scale = c.z / nc;
    let u = vec2f(bc.x / view.fx, bc.y / view.fy) * scale;
    let v = vec2f(ca.x / view.fx, ca.y / view.fy) * scale;
    // Turn (u, v) so that v does not change along a row.
    let along = sqrt(u.x * u.x + v.x * v.x);
    let turn = 1.0 / max(along, 1e-30);
    (*out).ux = select(along, 1e12, edge_on);
    (*out).uy = select((u.x * u.y + v.x * v.y) * turn, 0.0, edge_on);
    (*out).vy = select((u.x * v.y - u.y * v.x) * turn, 1e12, edge_on);
    (*out).g = select(vec2f(n.x / view.fx, n.y / view.fy) * scale, vec2f(0.0), edge_on);
    let zz = a.z * a.z + b.z * b.z;
    let xs = slopes(c.x, c.z, a.x * a.x + b.x * b.x, a.x * a.z + b.x * b.z, zz, level,
                    level * (ca.y * ca.y + bc.y * bc.y - level * n.y * n.y));
    let ys = slopes(c.y, c.z, a.y * a.y + b.y * b.y, a.y * a.z + b.y * b.z, zz, level,
                    level * (ca.x * ca.x + bc.x * bc.x - level * n.x * n.x));
    return Reach(xs, ys);
}

fn ellipsoid(index: u32, c: vec3f, out: ptr<function, Footprint>) -> Reach {
    let covariance = covariance_of(index);
    // Camera from world times the covariance.
    let k0 = rotated(covariance[0]);
    let k1 = rotated(covariance[1]);
    let k2 = rotated(covariance[2]);
    let dilate = vec2f(DILATION * c.z * c.z) / vec2f(view.fx * view.fx, view.fy * view.fy);
    let xx = k0.x * view.r00 + k1.x * view.r01 + k2.x * view.r02 + dilate.x;
    let yy = k0.y * view.r10 + k1.y * view.r11 + k2.y * view.r12 + dilate.y;
    let xy = k0.x * view.r10 + k1.x * view.r11 + k2.x * view.r12;
    let xz = k0.x * view.r20 + k1.x * view.r21 + k2.x * view.r22;
    let yz = k0.y * view.r20 + k1.y * view.r21 + k2.y * view.r22;
    let zz = max(k0.z * view.r20 + k1.z * view.r21 + k2.z * view.r22, 0.0);
    // Adjugate: the denominator's quadratic form.
    let jxx = max(yy * zz - yz * yz, 0.0);
    let jyy = max(xx * zz - xz * xz, 0.0);
    let jzz = xx * yy - xy * xy;
    let jxy = xz * yz - xy * zz;
    let jxz = xy * yz - xz * yy;
    let jyz = xy * xz - yz * xx;
    let p = vec3f(c.x / c.z, c.y / c.z, 1.0);
    let jp = vec3f(dot(vec3f(jxx, jxy, jxz), p), dot(vec3f(jxy, jyy, jyz), p), dot(vec3f(jxz, jyz, jzz), p));
    let is0 = 1.0 / max(dot(p, jp), 1e-30);
    if (ANTIALIASED) {
        // 1 / is0 is the determinant of the projected covariance (local affine, at the centre); this one is not dilated.
        let across = xx - dilate.x + p.x * (p.x * zz - 2.0 * xz);
        let down = yy - dilate.y + p.y * (p.y * zz - 2.0 * yz);
        let both = xy - p.x * yz - p.y * xz + p.x * p.y * zz;
        (*out).log_opacity += log(clamp((across * down - both * both) * is0, 1e-12, 1.0));
    }
    let level = max((*out).log_opacity + MAX_LEVEL, 0.0);
    let g = jp.xy * is0;
    (*out).g = vec2f(g.x / view.fx, g.y / view.fy);
    (*out).hxx = max(jxx * is0 - g.x * g.x, 0.0) / (view.fx * view.fx);
    (*out).hxy = 2.0 * (jxy * is0 - g.x * g.y) / (view.fx * view.fy);
    (*out).hyy = max(jyy * is0 - g.y * g.y, 0.0) / (view.fy * view.fy);
    // Numerator nxx dx² + 2 nxy dx dy + nyy dy², of determinant c.z⁴ / is0, as a sum of two squares.
    let nxx = max(c.z * (yy * c.z - yz * c.y) + c.y * (zz * c.y - yz * c.z), 1e-30);
    let nyy = max(c.z * (xx * c.z - xz * c.x) + c.x * (zz * c.x - xz * c.z), 0.0);
    let nxy = xz * c.y * c.z + yz * c.x * c.z - zz * c.x * c.y - xy * c.z * c.z;
    let along = sqrt(nxx * is0);
    (*out).ux = along / view.fx;
    (*out).uy = nxy * is0 / (along * view.fy);
    (*out).vy = c.z * c.z * sqrt(is0) / (along * view.fy);
    let xs = slopes(c.x, c.z, xx, xz, zz, level, level * (nyy - level * jyy));
    let ys = slopes(c.y, c.z, yy, yz, zz, level, level * (nxx - level * jxx));
    return Reach(xs, ys);
}

// False if no pixel can see it.
fn project(index: u32, out: ptr<function, Footprint>) -> bool {
    let c = rotated(mean_of(index) - vec3f(view.eye_x, view.eye_y, view.eye_z));
    var f: Footprint;
    f.log_opacity = log_opacity_of(index);
    if (!(c.z > view.near) || !(f.log_opacity + MAX_LEVEL >= 0.0)) {
        return false;
    }
    var reach: Reach;
    if (SURFELS) {
        reach = surfel(index, c, f.log_opacity + MAX_LEVEL, &f);
    } else {
        reach = ellipsoid(index, c, &f);
    }
    let level = f.log_opacity + MAX_LEVEL;
    if (!(level >= 0.0)) {
        return false;
    }
    f.inverse_depth = 1.0 / c.z;
    f.center = vec2f(view.fx * c.x * f.inverse_depth + view.cx, view.fy * c.y * f.inverse_depth + view.cy);
    var low = vec2f(view.fx * reach.xs.x + view.cx, view.fy * reach.ys.x + view.cy);
    var high = vec2f(view.fx * reach.xs.y + view.cx, view.fy * reach.ys.y + view.cy);
    if (SURFELS) {
        let radius = sqrt(0.5 * level);  // of the low-pass
        low = min(low, f.center - radius);
        high = max(high, f.center + radius);
    }
    // First pixel whose centre is at or right of `low`, and the one past the last; 0.01 px against rounding.
    let size = vec2f(f32(view.width), f32(view.height));
    f.low = clamp(ceil(low - 0.51), vec2f(0.0), size);
    f.high = clamp(floor(high + 0.51), vec2f(0.0), size);
    *out = f;
    return all(f.low < f.high);
}
