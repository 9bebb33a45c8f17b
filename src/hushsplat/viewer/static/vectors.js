// Vectors of three numbers, quaternions wxyz and rotations as three columns (right, down, forward), all plain arrays.

export const add = (a, b) => [a[0] + b[0], a[1] + b[1], a[2] + b[2]];
export const subtract = (a, b) => [a[0] - b[0], a[1] - b[1], a[2] - b[2]];
export const scale = (a, s) => [a[0] * s, a[1] * s, a[2] * s];
export const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
export const cross = (a, b) => [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]];
export const length = (a) => Math.hypot(...a);
export const normalized = (a) => scale(a, 1 / (length(a) || 1));

/** The vector turned about a unit axis (right-hand rule). */
export function turned(vector, axis, angle) {
  const c = Math.cos(angle), s = Math.sin(angle);
  return add(add(scale(vector, c), scale(cross(axis, vector), s)), scale(axis, dot(axis, vector) * (1 - c)));
}

/** Columns right, down, forward made exactly perpendicular again; forward stays. */
export function orthonormal([, down, forward]) {
  const f = normalized(forward);
  const right = normalized(cross(down, f));
  return [right, cross(f, right), f];
}

/** The columns of a camera that looks along `forward` with `up` upwards. */
export function looking(forward, up) {
  const f = normalized(forward);
  let right = cross(f, up);
  if (length(right) < 1e-6) right = cross(f, [up[1] + 0.1, up[2] + 0.2, up[0] + 0.3]);
  right = normalized(right);
  return [right, cross(f, right), f];
}

export function quaternionOf([r, d, f]) {
  // The four rows are 4·q[k]·q for k = w, x, y, z: the one with the largest q[k] loses no digits.
  const rows = [
    [1 + r[0] + d[1] + f[2], d[2] - f[1], f[0] - r[2], r[1] - d[0]],
    [d[2] - f[1], 1 + r[0] - d[1] - f[2], d[0] + r[1], f[0] + r[2]],
    [f[0] - r[2], d[0] + r[1], 1 - r[0] + d[1] - f[2], f[1] + d[2]],
    [r[1] - d[0], f[0] + r[2], f[1] + d[2], 1 - r[0] - d[1] + f[2]],
  ];
  const best = rows.map((row, k) => row[k]).reduce((a, v, k, all) => (v > all[a] ? k : a), 0);
  const size = Math.hypot(...rows[best]) * (rows[best][0] < 0 ? -1 : 1);
  return rows[best].map((v) => v / size);
}

export function rotationOf(quaternion) {
  const size = Math.hypot(...quaternion);
  const [w, x, y, z] = quaternion.map((v) => v / size);
  return [
    [1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)],
    [2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)],
    [2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)],
  ];
}

/** On the shorter arc from a to b. */
export function slerp(a, b, share) {
  let cosine = a.reduce((sum, v, k) => sum + v * b[k], 0);
  const sign = cosine < 0 ? -1 : 1;
  cosine = Math.min(1, Math.abs(cosine));
  const angle = Math.acos(cosine);
  if (angle < 1e-6) return a.map((v, k) => v * (1 - share) + sign * b[k] * share);
  const from = Math.sin((1 - share) * angle) / Math.sin(angle), to = sign * Math.sin(share * angle) / Math.sin(angle);
  return a.map((v, k) => v * from + b[k] * to);
}

/** A 4×4 matrix (rows) of a rotation and a place, as files and the server write it. */
export const matrixOf = ([r, d, f], eye) => [
  [r[0], d[0], f[0], eye[0]], [r[1], d[1], f[1], eye[1]], [r[2], d[2], f[2], eye[2]], [0, 0, 0, 1],
];
export const columnsOf = (matrix) => [0, 1, 2].map((c) => [matrix[0][c], matrix[1][c], matrix[2][c]]);
export const placeOf = (matrix) => [matrix[0][3], matrix[1][3], matrix[2][3]];
