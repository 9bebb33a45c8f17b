// A camera track in the page: key poses over time, a smooth curve through them, and the package's JSON.
import * as V from "./vectors.js";

const LIMIT = 1.5; // of the tangents, as in the package's splines: curves stay near their chords
const TOLERANCE = 0.025; // of a simplified track, shares of the picture's height: 20 px of 800, as a hand shakes
const EARLY_S = 0.08; // a hand is never on time: a pose may come so much earlier or later on a simplified track
const MOST_EVEN_KEYS = 24;
const DENSE_S = 0.12; // a recording has its poses closer than this
const FRAMES_A_SECOND = 30; // of the frames that a saved track of a few keys is written with

export class Track {
  constructor(keys = [], fov = 50) {
    this.keys = keys; // { time, eye, q } in the order of time
    this.fov = fov;
  }

  get empty() { return this.keys.length === 0; }
  get start() { return this.empty ? 0 : this.keys[0].time; }
  get end() { return this.empty ? 0 : this.keys[this.keys.length - 1].time; }
  get duration() { return this.end - this.start; }
  get dense() { return this.keys.length > 1 && this.duration / (this.keys.length - 1) < DENSE_S; }

  static key(time, camera) { return { time, eye: [...camera.eye], q: V.quaternionOf(camera.rotation) }; }

  /** The pose at a time: on the keys exactly, between them on a smooth curve. A recording turns on arcs, as the package
   * does between the frames of a track; a few keys would turn with a jerk at each of them, so they turn on a curve too. */
  at(time) {
    const { keys } = this;
    const clamped = Math.min(this.end, Math.max(this.start, time));
    if (keys.length === 1) return { eye: keys[0].eye, rotation: V.rotationOf(keys[0].q) };
    const after = keys.findIndex((key) => key.time > clamped);
    const segment = after < 0 ? keys.length - 2 : Math.max(0, after - 1);
    const near = this.#continuous(Math.max(0, segment - 2), Math.min(keys.length, segment + 4));
    const values = curve(near, clamped);
    const [a, b] = [keys[segment], keys[segment + 1]];
    const turned = this.dense ? V.slerp(a.q, b.q, (clamped - a.time) / (b.time - a.time)) : values.slice(3);
    return { eye: values.slice(0, 3), rotation: V.rotationOf(turned) };
  }

  /** Keys as seven numbers, quaternions on one side. */
  #continuous(first, last) {
    let before = null;
    return this.keys.slice(first, last).map(({ time, eye, q }) => {
      const flip = before && q.reduce((sum, v, k) => sum + v * before[k], 0) < 0;
      before = flip ? q.map((v) => -v) : q;
      return { time, values: [...eye, ...before] };
    });
  }

  /** Add a key, or replace the one that is there already; gives its index. */
  put(key) {
    const same = this.keys.findIndex(({ time }) => Math.abs(time - key.time) < 0.02);
    if (same >= 0) this.keys[same] = { ...key, time: this.keys[same].time };
    else this.keys.push(key);
    this.keys.sort((a, b) => a.time - b.time);
    return this.keys.findIndex(({ time }) => Math.abs(time - key.time) < 0.02);
  }

  /** Move a key in time, between its neighbours. */
  shift(index, time) {
    const least = index > 0 ? this.keys[index - 1].time + 0.02 : 0;
    const most = index < this.keys.length - 1 ? this.keys[index + 1].time - 0.02 : time;
    this.keys[index] = { ...this.keys[index], time: Math.min(most, Math.max(least, time)) };
  }

  remove(index) { this.keys.splice(index, 1); }

  /** Only what lies between two times, beginning at 0. */
  trimmed(from, to) {
    const pose = (time) => {
      const { eye, rotation } = this.at(time);
      return { time, eye, q: V.quaternionOf(rotation) };
    };
    const inner = this.keys.filter(({ time }) => time > from + 1e-6 && time < to - 1e-6);
    const keys = [pose(from), ...inner, pose(to)].map((key) => ({ ...key, time: key.time - from }));
    return new Track(keys, this.fov);
  }

  /** The few keys that matter: what is at this distance moves by at most so many
   * pixels of a picture of this height, give or take EARLY_S. */
  simplified(distance, height, tolerance = TOLERANCE * height) {
    const { keys } = this;
    const kept = new Set([0, keys.length - 1]);
    const focal = (0.5 * height) / Math.tan((this.fov * Math.PI) / 360);
    const error = (a, b) => {
      const [right, down, forward] = V.rotationOf(a.q), turned = V.rotationOf(b.q);
      const off = [forward, V.add(forward, V.scale(right, 0.5)), V.add(forward, V.scale(down, 0.5))].map((ray) => {
        const offset = V.subtract(V.add(a.eye, V.scale(ray, distance)), b.eye), depth = Math.max(V.dot(offset, turned[2]), 1e-3 * distance);
        return Math.hypot(V.dot(offset, turned[0]) / depth - V.dot(ray, right), V.dot(offset, turned[1]) / depth - V.dot(ray, down));
      });
      return focal * Math.max(...off);
    };
    /** The pose that a track of these keys misses most, and by how many pixels. */
    const worstOf = (few) => {
      let worst = -1, most = 0;
      keys.forEach((key, index) => {
        const off = Math.min(...[0, -0.25, 0.25, -0.5, 0.5, -1, 1].map((share) => {
          const { eye, rotation } = few.at(key.time + share * EARLY_S);
          return error(key, { eye, q: V.quaternionOf(rotation) });
        }));
        if (off > most) [worst, most] = [index, off];
      });
      return [worst, most];
    };
    const trackOf = (indices) => new Track([...new Set(indices)].sort((a, b) => a - b).map((index) => keys[index]), this.fov);
    // A single move needs few keys, evenly in time; where it rests or turns back, keys are added where they are missed.
    for (let count = 2; count <= MOST_EVEN_KEYS; count += 1) {
      const times = Array.from({ length: count }, (_, k) => this.start + (this.duration * k) / (count - 1));
      const even = trackOf(times.map((time) => keys.reduce((best, key, index) => (Math.abs(key.time - time) < Math.abs(keys[best].time - time) ? index : best), 0)));
      if (worstOf(even)[1] <= tolerance) return even;
    }
    for (;;) {
      const few = trackOf(kept), [worst, most] = worstOf(few);
      if (most <= tolerance || kept.has(worst) || kept.size > 200) return few;
      kept.add(worst);
    }
  }

  /** As the package writes tracks; few keys are also written as many frames, so that every reader flies the same curve. */
  json(width, height, every = FRAMES_A_SECOND) {
    const focal = (0.5 * height) / Math.tan((this.fov * Math.PI) / 360);
    const frame = ({ time, eye, q }) => ({ time_s: time, world_from_camera: V.matrixOf(V.rotationOf(q), eye) });
    const content = {
      format: "hushsplat-track", version: 1, convention: "opencv", width, height,
      fx: focal, fy: focal, cx: width / 2, cy: height / 2, frames: this.keys.map(frame),
    };
    if (this.dense || this.keys.length < 2) return content;
    const count = Math.max(1, Math.round(this.duration * every));
    content.keys = content.frames;
    content.frames = Array.from({ length: count + 1 }, (_, index) => {
      const time = this.start + (this.duration * index) / count;
      const { eye, rotation } = this.at(time);
      return { time_s: time, world_from_camera: V.matrixOf(rotation, eye) };
    });
    return content;
  }

  static fromJson(content) {
    const keys = (content.keys ?? content.frames).map(({ time_s, world_from_camera: matrix }) => (
      { time: time_s, eye: V.placeOf(matrix), q: V.quaternionOf(V.columnsOf(matrix)) }));
    const first = keys[0].time;
    const fov = (360 / Math.PI) * Math.atan((0.5 * content.height) / content.fy);
    return new Track(keys.map((key) => ({ ...key, time: key.time - first })), fov);
  }
}

/** The curve of the package (types/splines.py): Catmull-Rom in time, with tangents limited in length. */
function curve(knots, at) {
  const after = knots.findIndex(({ time }) => time > at);
  const k = after < 0 ? knots.length - 2 : Math.max(0, after - 1);
  const span = knots[k + 1].time - knots[k].time;
  const u = (at - knots[k].time) / span, blend = u * u * (3 - 2 * u);
  const [from, to] = [tangent(knots, k), tangent(knots, k + 1)];
  return knots[k].values.map((start, j) => {
    const bent = span * u * (1 - u) * ((1 - u) * from[j] - u * to[j]);
    return (1 - blend) * start + blend * knots[k + 1].values[j] + bent;
  });
}

/** The derivative at a knot: of the parabola through it and its neighbours. Places and turns are limited each by itself. */
function tangent(knots, k) {
  const slope = (i) => knots[i + 1].values.map((v, j) => (v - knots[i].values[j]) / (knots[i + 1].time - knots[i].time));
  const step = (i) => knots[i + 1].time - knots[i].time;
  const last = knots.length - 1;
  if (last === 1) return slope(0);
  const mix = (a, b, share) => a.map((v, j) => v * (1 - share) + b[j] * share);
  let wanted, neighbours;
  if (k === 0) {
    const [a, b] = [slope(0), slope(1)];
    wanted = a.map((v, j) => v + ((v - b[j]) * step(0)) / (step(0) + step(1)));
    neighbours = [a];
  } else if (k === last) {
    const [a, b] = [slope(last - 1), slope(last - 2)];
    wanted = a.map((v, j) => v + ((v - b[j]) * step(last - 1)) / (step(last - 1) + step(last - 2)));
    neighbours = [a];
  } else {
    const [a, b] = [slope(k - 1), slope(k)];
    wanted = mix(a, b, step(k - 1) / (step(k - 1) + step(k)));
    neighbours = [a, b];
  }
  const limited = (first, end) => {
    const size = (values) => Math.hypot(...values.slice(first, end));
    const allowed = LIMIT * Math.min(...neighbours.map(size)), length = size(wanted);
    return wanted.slice(first, end).map((v) => (length > allowed ? (v * allowed) / Math.max(length, 1e-300) : v));
  };
  return [...limited(0, 3), ...limited(3, 7)];
}
