// The strip at the bottom: record, play, scrub, trim, key poses, save and load, and render to a video.
import * as V from "./vectors.js";
import { address } from "./connection.js";
import { download, upload } from "./files.js";
import { showError, note } from "./notes.js";
import { Track } from "./tracks.js";

const $ = (id) => document.getElementById(id);
const NEXT_KEY_S = 2; // between keys that are added one after the other
const HELD_MS = 100; // a camera that rests this long while recording gets a pose before it moves on
const MOST_KEYS_DRAWN = 400;
const MOST_UNDONE = 100;

export class Timeline extends EventTarget {
  #frame = 0;
  #lastMoved = 0;
  #before = []; // tracks to go back to

  constructor(camera, stage, session) {
    super();
    this.camera = camera;
    this.stage = stage;
    this.session = session; // gives the id that the server knows us by
    this.track = new Track();
    this.time = 0;
    this.playing = false;
    this.recording = null;
    this.chosen = -1;
    this.range = [0, 0];
    this.heldSpan = 0;
    this.following = false; // whether the camera is where the track is
    camera.addEventListener("change", () => this.#cameraMoved());
    this.#wire();
    this.reflect();
  }

  get open() { return !$("timeline").hidden; }
  toggle(open = !this.open) {
    if (!open && this.open && this.recording) note("the recording goes on; B ends it, or the red button");
    $("timeline").hidden = !open;
    $("tracks").setAttribute("aria-expanded", open);
    document.body.classList.toggle("tracks", open);
    if (open) this.dispatchEvent(new Event("open"));
    this.reflect();
  }

  // --- recording

  toggleRecording() {
    this.toggle(true);
    if (this.recording) return this.#finishRecording();
    this.pause();
    this.recording = { start: performance.now(), keys: [Track.key(0, this.camera)] };
    this.#lastMoved = performance.now();
    this.#tick();
    this.reflect();
  }

  #cameraMoved() {
    if (!this.playing && !this.scrubbing) this.following = false;
    if (!this.recording) return;
    const now = performance.now(), time = (now - this.recording.start) / 1000, { keys } = this.recording;
    const before = keys[keys.length - 1];
    if (now - this.#lastMoved > HELD_MS) keys.push({ ...before, time: Math.max(before.time + 0.001, time - 0.016) });
    this.#lastMoved = now;
    const key = Track.key(time, this.camera);
    if (time - keys[keys.length - 1].time < 0.004) keys[keys.length - 1] = { ...key, time: keys[keys.length - 1].time };
    else keys.push(key);
  }

  /** End a recording, and playing: before another scene is shown. */
  stop() {
    this.pause();
    if (this.recording) this.#finishRecording();
  }

  #finishRecording() {
    const { start, keys } = this.recording;
    const time = (performance.now() - start) / 1000;
    this.recording = null;
    if (time - keys[keys.length - 1].time > 0.004) keys.push(Track.key(time, this.camera));
    this.set(new Track(keys, this.camera.fov));
  }

  /** Keep the track as it is before a change, for `undo`. */
  #remember() {
    this.#before.push({ keys: this.track.keys.map((key) => ({ ...key })), fov: this.track.fov, range: [...this.range], time: this.time });
    if (this.#before.length > MOST_UNDONE) this.#before.shift();
  }

  undo() {
    const before = this.#before.pop();
    if (!before) return void note("there is nothing to undo");
    this.toggle(true);
    this.track = new Track(before.keys, before.fov);
    [this.range, this.time, this.chosen] = [before.range, before.time, -1];
    this.reflect();
  }

  /** The track as text, for the page when it is loaded again; empty if there is none. */
  kept(scene) {
    const { keys, fov } = this.track;
    return keys.length ? JSON.stringify({ scene, keys, fov, range: this.range, open: this.open }) : "";
  }

  /** A track that was kept, if it was of this scene. */
  restore(text, scene) {
    if (!text || !this.track.empty) return;
    const kept = JSON.parse(text);
    if (kept.scene !== scene) return;
    this.track = new Track(kept.keys, kept.fov);
    this.range = kept.range;
    this.toggle(kept.open);
  }

  /** Another track; the playhead goes to its end. */
  set(track) {
    this.#remember();
    this.track = track;
    this.range = [track.start, track.end];
    this.time = track.end;
    this.chosen = -1;
    this.reflect();
  }

  // --- playing

  togglePlay() { this.playing ? this.pause() : this.play(); }

  play() {
    if (this.track.duration <= 0) return;
    if (this.time >= this.range[1] - 1e-3) this.time = this.range[0];
    this.playing = true;
    this.#follow();
    this.from = { now: performance.now(), time: this.time };
    this.#tick();
    this.reflect();
  }

  pause() {
    this.playing = false;
    this.reflect();
  }

  seek(time) {
    this.time = Math.min(this.track.end, Math.max(this.track.start, time));
    if (this.track.empty) return;
    this.scrubbing = true;
    this.#follow();
    this.scrubbing = false;
    if (this.playing) this.from = { now: performance.now(), time: this.time };
    this.reflect();
  }

  #follow() {
    const { eye, rotation } = this.track.at(this.time);
    const distance = this.camera.distance;
    this.following = true;
    this.camera.place({ eye, rotation, distance, fov: this.track.fov });
  }

  /** One loop for playing and recording; it ends with them. */
  #tick() {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame((now) => {
      if (this.playing) {
        this.time = Math.min(this.range[1], this.from.time + Math.max(0, now - this.from.now) / 1000); // frames begin in the past
        this.#follow();
        if (this.time >= this.range[1]) this.playing = false;
      }
      this.reflect();
      if (this.playing || this.recording) this.#tick();
    });
  }

  // --- keys

  addKey() {
    this.toggle(true);
    this.#remember();
    if (this.track.empty) this.track = new Track([], this.camera.fov);
    const last = this.track.end;
    const atEnd = !this.track.empty && !this.following && this.time >= last - 0.02;
    const time = this.track.empty ? 0 : atEnd ? last + NEXT_KEY_S : this.time;
    const whole = this.range[1] >= last - 1e-6;
    this.chosen = this.track.put(Track.key(time, this.camera));
    this.time = time;
    if (whole) this.range = [Math.min(this.range[0], this.track.start), this.track.end];
    this.reflect();
  }

  choose(index) {
    if (!this.track.keys[index]) return;
    this.chosen = index;
    this.seek(this.track.keys[index].time);
  }

  stepKey(step) {
    const { keys } = this.track;
    const later = keys.findIndex(({ time }) => time > this.time + 1e-3);
    const before = keys.reduce((found, { time }, index) => (time < this.time - 1e-3 ? index : found), -1);
    this.choose(step > 0 ? later : before);
  }

  removeKey() {
    if (this.chosen < 0 || this.track.empty) return;
    this.#remember();
    this.track.remove(this.chosen);
    this.chosen = Math.min(this.chosen, this.track.keys.length - 1);
    this.range = [Math.max(this.range[0], this.track.start), Math.min(this.range[1], this.track.end)];
    this.time = Math.min(this.time, this.track.end);
    this.reflect();
  }

  setKey() {
    const key = this.track.keys[this.chosen];
    if (!key) return;
    this.#remember();
    this.track.keys[this.chosen] = Track.key(key.time, this.camera);
    this.time = key.time;
    note("the key is set to this camera");
    this.reflect();
  }

  // --- files

  save() {
    if (this.track.empty) return;
    const { width, height } = this.stage.canvas;
    const { frames, keys, ...head } = this.track.json(width, height);
    const lines = (list) => list.map((frame) => JSON.stringify(frame)).join(",\n");
    const tail = keys ? `, "keys": [\n${lines(keys)}\n]` : "";
    download(`${JSON.stringify(head).slice(0, -1)}, "frames": [\n${lines(frames)}\n]${tail}}\n`, "track.json", "application/json");
  }

  async load(file) {
    try {
      const track = Track.fromJson(await upload("track", file, this.session()));
      this.toggle(true);
      this.set(track);
      if (track.keys.length > 1) this.seek(track.start);
      else this.camera.flyTo({ ...track.at(0), fov: track.fov });
      note(`${file.name}: ${track.keys.length} poses, ${track.duration.toFixed(1)} s`);
    } catch (error) {
      showError(error.message);
    }
  }

  /** Go to the camera of a screenshot; the track stays as it is. */
  async visit(file) {
    try {
      const track = Track.fromJson(await upload("track", file, this.session()));
      this.pause();
      this.camera.flyTo({ ...track.at(0), fov: track.fov });
      note("back to where it was taken");
    } catch (error) {
      showError(error.message);
    }
  }

  // --- video

  async renderVideo() {
    if (this.track.duration <= 0) return;
    const [width, height] = $("video-size").value.split("x").map(Number);
    const fps = Number($("video-fps").value);
    const cut = this.track.trimmed(...this.range);
    const order = { track: cut.json(width, height, Math.max(60, fps)), fps, width, height, divider: this.stage.split };
    const file = new File([JSON.stringify(order)], "video");
    try {
      await upload("video", file, this.session());
    } catch (error) {
      showError(error.message);
    }
  }

  showVideoState({ id, state, frame, frames, message, bytes }) {
    const row = $("video-progress"), link = $("video-save");
    row.hidden = state === "cancelled" || state === "failed";
    row.querySelector("progress").value = frame / frames;
    row.querySelector("span").textContent = state === "ready" ? `${frames} frames, ${(bytes / 1e6).toFixed(1)} MB` : `${frame} of ${frames} frames`;
    $("video-cancel").hidden = state !== "drawing";
    $("video").disabled = state === "drawing";
    link.hidden = state !== "ready";
    if (state === "ready") {
      link.href = address(`video/${id}`);
      link.download = "hushsplat.mp4";
    }
    if (state === "cancelled") note("the video was cancelled");
    if (state === "failed") showError(message);
  }

  /** The server is new, and so has no video of ours. */
  clearVideo() {
    $("video-progress").hidden = true;
    $("video").disabled = false;
  }

  // --- the strip

  #wire() {
    $("tracks").onclick = () => this.toggle();
    $("record").onclick = () => this.toggleRecording();
    $("play").onclick = () => this.togglePlay();
    $("key-add").onclick = () => this.addKey();
    $("key-before").onclick = () => this.stepKey(-1);
    $("key-next").onclick = () => this.stepKey(1);
    $("key-set").onclick = () => this.setKey();
    $("key-remove").onclick = () => this.removeKey();
    $("simplify").onclick = () => {
      this.set(this.track.simplified(this.camera.distance, this.stage.canvas.clientHeight));
      note(`${this.track.keys.length} keys are left`);
    };
    $("trim").onclick = () => this.set(this.track.trimmed(...this.range));
    $("track-save").onclick = () => this.save();
    $("undo").onclick = () => this.undo();
    $("track-clear").onclick = () => this.set(new Track());
    $("video").onclick = () => this.renderVideo();
    new ResizeObserver(() => document.body.style.setProperty("--timeline", `${$("timeline").offsetHeight}px`)).observe($("timeline"));
    this.#wireRail();
  }

  #wireRail() {
    const rail = $("rail");
    const timeAt = (event) => {
      const box = rail.getBoundingClientRect();
      return this.track.start + ((event.clientX - box.left) / box.width) * this.span;
    };
    /** `grab` of where it begins gives what is moved: a place of time that stays under the hand, or nothing. */
    const drag = (element, onMove, grab = null) => {
      element.addEventListener("pointerdown", (event) => {
        if (this.track.empty) return;
        event.stopPropagation();
        event.preventDefault();
        rail.focus({ preventScroll: true });
        rail.setPointerCapture(event.pointerId);
        const off = grab ? grab(timeAt(event)) - timeAt(event) : 0;
        const move = (moved) => onMove(timeAt(moved) + off);
        this.heldSpan = this.span; // the rail keeps its measure while something moves on it
        move(event);
        rail.addEventListener("pointermove", move);
        const end = () => {
          rail.removeEventListener("pointermove", move);
          this.heldSpan = 0;
          this.reflect();
        };
        rail.addEventListener("pointerup", end, { once: true });
        rail.addEventListener("pointercancel", end, { once: true });
      });
    };
    drag(rail, (time) => this.seek(time));
    drag($("handle-a"), (time) => this.#setRange(0, time));
    drag($("handle-b"), (time) => this.#setRange(1, time));
    this.dragKey = (element) => drag(element, (time) => {
      const whole = this.range[1] >= this.track.end - 1e-6;
      if (Math.abs(time - this.track.keys[this.chosen].time) > 0.004 * this.span) this.track.shift(this.chosen, time);
      if (whole) this.range[1] = this.track.end;
      this.seek(this.track.keys[this.chosen].time);
    }, (time) => { // a finger covers several marks: the nearest one
      this.#remember();
      const { keys } = this.track, away = (key) => Math.abs(key.time - time);
      this.chosen = keys.reduce((best, key, index) => (away(key) < away(keys[best]) ? index : best), 0);
      return keys[this.chosen].time;
    });
    rail.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -1 / 30, ArrowRight: 1 / 30, PageDown: -1, PageUp: 1, Home: -1e9, End: 1e9 }[event.key];
      if (step !== undefined) {
        event.preventDefault();
        this.seek(this.time + step);
      } else if (event.key === "i" || event.key === "o") {
        this.#setRange(event.key === "i" ? 0 : 1, this.time);
      } else return;
      event.stopPropagation(); // O is orbit elsewhere
    });
  }

  #setRange(end, time) {
    const { start } = this.track, last = this.track.end;
    this.range[end] = end === 0 ? Math.min(Math.max(start, time), this.range[1] - 0.05) : Math.max(Math.min(last, time), this.range[0] + 0.05);
    this.seek(this.range[end]);
  }

  /** Seconds that the rail shows: a little more than the track, so that its last key can be moved. */
  get span() { return this.heldSpan || Math.max(1, this.track.duration * (this.track.dense ? 1 : 1.08)); }

  reflect() {
    document.body.classList.toggle("recording", Boolean(this.recording));
    if (!this.open) return;
    const { track } = this, { recording } = this;
    const place = (time) => `${(100 * (time - track.start)) / this.span}%`;
    const seconds = recording ? (performance.now() - recording.start) / 1000 : this.time;
    $("clock").textContent = recording ? `● ${seconds.toFixed(2)} s` : `${seconds.toFixed(2)} / ${track.duration.toFixed(2)} s`;
    $("record").setAttribute("aria-pressed", Boolean(recording));
    $("record").querySelector("use").setAttribute("href", recording ? "#i-stop" : "#i-record");
    $("play").querySelector("use").setAttribute("href", this.playing ? "#i-pause" : "#i-play");
    $("play").setAttribute("aria-label", this.playing ? "Pause" : "Play");
    const some = track.duration > 0;
    for (const id of ["play", "trim", "track-save", "video", "simplify", "track-clear"]) $(id).disabled = !some;
    $("track-save").disabled = $("track-clear").disabled = track.empty;
    $("undo").disabled = !this.#before.length;
    $("simplify").disabled = track.keys.length < 3;
    for (const id of ["key-set", "key-remove"]) $(id).disabled = this.chosen < 0;
    for (const id of ["handle-a", "handle-b", "outside-a", "outside-b", "head"]) $(id).hidden = !some;
    $("handle-a").style.left = place(this.range[0]);
    $("handle-b").style.left = place(this.range[1]);
    $("outside-a").style.width = place(this.range[0]);
    $("outside-b").style.width = `calc(100% - ${place(this.range[1])})`;
    $("head").style.left = place(this.time);
    $("rail").setAttribute("aria-valuemax", track.duration.toFixed(2));
    $("rail").setAttribute("aria-valuenow", this.time.toFixed(2));
    this.#reflectKeys(place);
  }

  #reflectKeys(place) {
    const { keys, dense } = this.track;
    const key = JSON.stringify([keys.length, dense, this.span, keys.map(({ time }) => time.toFixed(3)), this.chosen]);
    if (key === this.keysShown) return;
    this.keysShown = key;
    const every = Math.ceil(keys.length / MOST_KEYS_DRAWN);
    $("keys").replaceChildren(...keys.flatMap(({ time }, index) => {
      if (index % every) return [];
      const mark = document.createElement("i");
      mark.classList.toggle("dense", dense);
      mark.classList.toggle("chosen", index === this.chosen);
      mark.style.left = place(time);
      if (!dense) this.dragKey(mark);
      return [mark];
    }));
  }
}
