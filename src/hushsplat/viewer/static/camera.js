// The camera of the page: where it is, how it is turned, and the point that it turns about.
import * as V from "./vectors.js";
import { Walls } from "./walls.js";

const NEAREST_TO_POLE = 0.05; // rad: orbits end before they look straight along up

export class Camera extends EventTarget {
  #orbit = null; // the distance that the eye had before a wall came, and the one it has
  constructor() {
    super();
    this.eye = [0, 0, -4];
    this.rotation = [[1, 0, 0], [0, 1, 0], [0, 0, 1]]; // right, down, forward
    this.pivot = [0, 0, 0];
    this.fov = 50; // degrees from top to bottom
    this.up = [0, -1, 0];
    this.radius = 1; // of the scene: the measure for all moves
    this.depth = null; // of the middle of the picture, as the server last saw it
    this.flight = null;
    this.walls = null; // about a pivot, see walls.js
  }

  get right() { return this.rotation[0]; }
  get down() { return this.rotation[1]; }
  get forward() { return this.rotation[2]; }
  get matrix() { return V.matrixOf(this.rotation, this.eye); }
  get distance() { return V.length(V.subtract(this.pivot, this.eye)); }

  changed() { this.dispatchEvent(new Event("change")); }

  /** Put the camera somewhere; with a distance the pivot goes there on the axis. */
  place({ eye, rotation, fov, pivot, distance }) {
    this.flight = null;
    this.#place({ eye, rotation, fov, pivot, distance });
  }

  #place({ eye, rotation, fov, pivot, distance }) {
    if (eye) this.eye = eye;
    if (rotation) this.rotation = V.orthonormal(rotation);
    if (fov) this.fov = Math.min(150, Math.max(5, fov));
    if (pivot) this.pivot = pivot;
    else if (distance) this.pivot = V.add(this.eye, V.scale(this.forward, distance));
    this.changed();
  }

  /** Fly there smoothly, or jump where people asked for less motion. */
  flyTo(goal, seconds = 0.6) {
    if (matchMedia("(prefers-reduced-motion: reduce)").matches || seconds <= 0) return this.place(goal);
    const from = { eye: this.eye, q: V.quaternionOf(this.rotation), fov: this.fov, pivot: this.pivot };
    const rotation = goal.rotation ?? this.rotation, eye = goal.eye ?? this.eye;
    const to = { eye, q: V.quaternionOf(rotation), fov: goal.fov ?? this.fov };
    to.pivot = goal.pivot ?? V.add(eye, V.scale(rotation[2], goal.distance ?? this.distance));
    const start = performance.now();
    const flight = this.flight = (now) => {
      if (this.flight !== flight) return;
      const share = Math.min(1, (now - start) / (1000 * seconds));
      if (share >= 1) return this.place({ ...to, rotation });
      const ease = share * share * (3 - 2 * share);
      const mix = (a, b) => V.add(V.scale(a, 1 - ease), V.scale(b, ease));
      const fov = from.fov + (to.fov - from.fov) * ease;
      this.#place({ eye: mix(from.eye, to.eye), rotation: V.rotationOf(V.slerp(from.q, to.q, ease)), fov, pivot: mix(from.pivot, to.pivot) });
      requestAnimationFrame(flight);
    };
    requestAnimationFrame(flight);
  }

  #turn(yaw, pitch, about, tell = true) {
    this.flight = null;
    const turn = (axis, angle) => {
      this.rotation = V.orthonormal(this.rotation.map((column) => V.turned(column, axis, angle)));
      this.eye = V.add(about, V.turned(V.subtract(this.eye, about), axis, angle));
    };
    turn(this.up, yaw);
    const after = V.turned(this.forward, this.right, pitch);
    const polar = Math.acos(Math.min(1, Math.abs(V.dot(after, this.up))));
    const before = Math.acos(Math.min(1, Math.abs(V.dot(this.forward, this.up))));
    if (polar > NEAREST_TO_POLE || polar > before) turn(this.right, pitch);
    if (tell) this.changed();
  }

  /** Turn about the pivot, by angles: the scene follows the hand. Before a wall the eye comes nearer, and goes back after it. */
  orbit(yaw, pitch) {
    const distance = this.distance;
    if (this.#orbit?.at !== distance) this.#orbit = { wanted: distance, at: distance };
    const { wanted } = this.#orbit;
    this.#turn(yaw, pitch, this.pivot, false);
    const offset = V.subtract(this.eye, this.pivot);
    const allowed = this.walls?.isAbout(this.pivot, this.radius) ? this.walls.allowed(offset, wanted) : wanted;
    const pace = Walls.pace(Math.hypot(yaw, pitch));
    this.eye = V.add(this.pivot, V.scale(V.normalized(offset), Math.min(distance * pace, Math.max(distance / pace, allowed))));
    this.#orbit = { wanted, at: this.distance };
    this.changed();
  }

  /** Whether walls about this pivot are known, or asked for. */
  get knowsWalls() {
    const { walls } = this, wanted = this.#orbit?.at === this.distance ? this.#orbit.wanted : this.distance;
    return walls?.isAbout(this.pivot, this.radius) && walls.near <= 0.51 * wanted && walls.near >= 0.25 * wanted;
  }

  /** Turn on the spot. */
  look(yaw, pitch) {
    const distance = this.distance;
    this.#turn(yaw, pitch, this.eye);
    this.pivot = V.add(this.eye, V.scale(this.forward, distance));
  }

  /** Move along the camera's own axes, in world units; the pivot comes along. */
  move(right, down, forward) {
    this.flight = null;
    const step = V.add(V.add(V.scale(this.right, right), V.scale(this.down, down)), V.scale(this.forward, forward));
    this.eye = V.add(this.eye, step);
    this.pivot = V.add(this.pivot, step);
    this.changed();
  }

  /** Move so that what is at the pivot's depth follows the hand by so many shares of the picture's height. */
  pan(x, y) {
    const size = 2 * this.distance * Math.tan((this.fov * Math.PI) / 360);
    this.move(-x * size, -y * size, 0);
  }

  /** Come nearer to the pivot (factor < 1) or go away; close to it, it is pushed ahead. */
  dolly(factor) {
    this.flight = null;
    const nearest = 0.02 * this.radius;
    const toEye = V.subtract(this.eye, this.pivot);
    let eye = V.add(this.pivot, V.scale(toEye, factor));
    if (this.distance * factor < nearest && factor < 1) {
      const ahead = V.scale(this.forward, this.distance * (1 - factor) + 0.25 * nearest);
      eye = V.add(this.eye, ahead);
      this.pivot = V.add(this.pivot, ahead);
    }
    if (V.length(V.subtract(eye, this.pivot)) < 1e4 * this.radius) this.eye = eye;
    this.changed();
  }

  /** Nearer to a point, which comes to the middle and is what the camera turns about from then on. */
  towards(point, share = 0.6) {
    const offset = V.subtract(this.eye, point);
    const distance = Math.max(share * V.length(offset), Math.min(V.length(offset), 0.02 * this.radius));
    const eye = V.add(point, V.scale(V.normalized(offset), distance));
    return { eye, rotation: V.looking(V.scale(offset, -1), this.up), pivot: point };
  }

  /** The same direction with a level horizon. */
  leveled() { return { rotation: V.looking(this.forward, this.up), pivot: this.pivot }; }

  /** Look at the pivot from a direction (towards the eye). */
  from(direction) {
    const eye = V.add(this.pivot, V.scale(direction, Math.max(this.distance, 0.1 * this.radius)));
    return { eye, rotation: V.looking(V.scale(direction, -1), this.up), pivot: this.pivot };
  }

  /** Where a world point is in the picture, as shares of its width and height; null behind the camera. */
  project(point, aspect) {
    const offset = V.subtract(point, this.eye);
    const depth = V.dot(offset, this.forward);
    if (depth <= 1e-9) return null;
    const half = Math.tan((this.fov * Math.PI) / 360);
    return [0.5 + V.dot(offset, this.right) / (2 * depth * half * aspect), 0.5 + V.dot(offset, this.down) / (2 * depth * half)];
  }
}
