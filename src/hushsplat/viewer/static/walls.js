// What stands around a pivot: how far the eye may be from it in a direction, without jumps.
import * as V from "./vectors.js";

const BEFORE_WALL = 0.9; // of the way to a wall
const HALF = 2; // cells to each side: what fills less than half of such a square is no wall, the eye passes through it
const SLOPE = 2; // the distance changes by at most this share of it per radian, so the eye comes nearer before a wall

export class Walls {
  #cells = []; // direction and distance of every cell with a surface
  #cell = 0; // rad from the middle of a cell to its corner: within it the distance is the same

  /** Of the server's answer: distances on the faces of a cube, 0 where nothing is; without them it is still asked for. */
  constructor({ point, near, size, far }) {
    this.point = point;
    this.near = near;
    this.known = Boolean(far);
    if (!far) return;
    this.#cells = cells(size, far.map((value) => value || Infinity));
    this.#cell = Math.SQRT2 / size;
  }

  isAbout(pivot, radius) { return V.length(V.subtract(this.point, pivot)) < 1e-6 * (1 + radius); }

  /** The largest distance from the pivot in this direction, up to the wanted one. */
  allowed(offset, wanted) {
    const way = V.normalized(offset);
    let least = wanted;
    for (const { direction, distance } of this.#cells) {
      if (distance >= least) continue;
      const angle = Math.acos(Math.min(1, Math.max(-1, V.dot(direction, way))));
      least = Math.min(least, distance * Math.exp(SLOPE * Math.max(0, angle - this.#cell)));
    }
    return Math.min(wanted, Math.max(least, this.near));
  }

  /** By which factor the distance may change when the eye turns so far: also after walls became known too late. */
  static pace(angle) { return Math.exp(0.08 + SLOPE * angle); }
}

function cells(size, far) {
  const found = [];
  for (let face = 0; face < 6; face++) {
    for (let row = 0; row < size; row++) {
      for (let column = 0; column < size; column++) {
        const near = [];
        for (let y = Math.max(0, row - HALF); y <= Math.min(size - 1, row + HALF); y++) {
          for (let x = Math.max(0, column - HALF); x <= Math.min(size - 1, column + HALF); x++) near.push(far[(face * size + y) * size + x]);
        }
        const distance = BEFORE_WALL * near.sort((a, b) => a - b)[near.length >> 1];
        if (distance < Infinity) found.push({ direction: directionOf(face, row, column, size), distance });
      }
    }
  }
  return found;
}

/** Of the middle of a cell: columns of a face run along the next axis, rows along the one after it. */
function directionOf(face, row, column, size) {
  const axis = face >> 1, direction = [0, 0, 0];
  direction[axis] = face % 2 ? -1 : 1;
  direction[(axis + 1) % 3] = (2 * column + 1) / size - 1;
  direction[(axis + 2) % 3] = (2 * row + 1) / size - 1;
  return V.normalized(direction);
}
