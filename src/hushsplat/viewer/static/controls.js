// Hands on the camera: mouse, touch and keys.

const TURN = 4.2; // rad for a drag over the picture's shorter side
const KEY_TURN = 1.3; // rad a second
const WHEEL = 0.0012; // per px of the wheel
const WHEEL_SPEED = 0.004; // powers of two per px of the wheel
const PACE = 0.5; // of the depth ahead a second
const DOUBLE_TAP_MS = 320, TAP_PX = 22;

export class Controls extends EventTarget {
  #camera;
  #canvas;
  #pointers = new Map();
  #held = new Set();
  #touched = -1e9; // when a finger was last lifted: some browsers make a double click of a double tap, too
  #tap = { time: -1e9, x: 0, y: 0 };
  #frame = 0;

  constructor(camera, canvas) {
    super();
    this.#camera = camera;
    this.#canvas = canvas;
    this.mode = "orbit";
    this.speed = 0; // power of two
    this.fast = false;
    canvas.addEventListener("pointerdown", (event) => this.#down(event));
    canvas.addEventListener("pointermove", (event) => this.#move(event));
    for (const end of ["pointerup", "pointercancel", "lostpointercapture"]) canvas.addEventListener(end, (event) => this.#up(event));
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("contextmenu", (event) => event.preventDefault());
    canvas.addEventListener("dblclick", (event) => event.timeStamp - this.#touched > DOUBLE_TAP_MS && this.#pick(event));
    addEventListener("keydown", (event) => this.#key(event, true));
    addEventListener("keyup", (event) => this.#key(event, false));
    addEventListener("blur", () => this.#held.clear());
  }

  setMode(mode) {
    this.mode = mode;
    this.#canvas.classList.toggle("fly", mode === "fly");
    this.dispatchEvent(new Event("mode"));
  }

  /** World units a second when flying: by how far away what is ahead is. */
  get pace() {
    const { radius, depth } = this.#camera;
    return PACE * Math.min(2 * radius, Math.max(0.02 * radius, depth ?? radius)) * 2 ** this.speed;
  }

  #hold() { this.dispatchEvent(new CustomEvent("hold", { detail: this.#pointers.size > 0 })); }

  #turn(x, y) {
    const side = Math.min(this.#canvas.clientWidth, this.#canvas.clientHeight);
    const yaw = (-x * TURN) / side, pitch = (-y * TURN) / side;
    // A grabbed scene follows the hand; on the spot, the hand points where to look, as far as the lens shows.
    if (this.mode === "orbit") this.#camera.orbit(yaw, pitch);
    else this.#camera.look(yaw * (this.#camera.fov / 110), pitch * (this.#camera.fov / 110));
  }

  #down(event) {
    this.#canvas.setPointerCapture(event.pointerId);
    this.#pointers.set(event.pointerId, { x: event.clientX, y: event.clientY, button: event.button, moved: 0 });
    this.#canvas.focus({ preventScroll: true });
    this.dispatchEvent(new Event("grab"));
    if (this.#pointers.size === 1) this.#hold();
  }

  #move(event) {
    const held = this.#pointers.get(event.pointerId);
    if (!held) return;
    const x = event.clientX - held.x, y = event.clientY - held.y;
    held.moved += Math.hypot(x, y);
    if (this.#pointers.size === 1) {
      held.x = event.clientX;
      held.y = event.clientY;
      const pans = held.button === 1 || held.button === 2 || event.shiftKey;
      if (pans) this.#camera.pan(x / this.#canvas.clientHeight, y / this.#canvas.clientHeight);
      else this.#turn(x, y);
      return;
    }
    // Two fingers: what is between them follows them.
    const [first, second] = this.#pointers.values();
    const spread = () => Math.hypot(first.x - second.x, first.y - second.y);
    const before = spread();
    held.x = event.clientX;
    held.y = event.clientY;
    const height = this.#canvas.clientHeight;
    this.#camera.pan(x / 2 / height, y / 2 / height);
    if (before > 0 && spread() > 0) this.#camera.dolly(before / spread());
  }

  #up(event) {
    const held = this.#pointers.get(event.pointerId);
    this.#pointers.delete(event.pointerId);
    if (held && !this.#pointers.size) this.#hold();
    if (event.pointerType === "touch") this.#touched = event.timeStamp;
    if (!held || event.pointerType !== "touch" || held.moved > TAP_PX) return;
    const again = event.timeStamp - this.#tap.time < DOUBLE_TAP_MS
      && Math.hypot(event.clientX - this.#tap.x, event.clientY - this.#tap.y) < TAP_PX;
    this.#tap = { time: again ? -1e9 : event.timeStamp, x: event.clientX, y: event.clientY };
    if (again) this.#pick(event);
  }

  #pick(event) {
    const detail = { x: event.clientX / this.#canvas.clientWidth, y: event.clientY / this.#canvas.clientHeight };
    this.dispatchEvent(new CustomEvent("pick", { detail }));
  }

  #wheel(event) {
    event.preventDefault();
    const lines = event.deltaMode === 1 ? 18 : event.deltaMode === 2 ? 400 : 1;
    const amount = Math.max(-400, Math.min(400, event.deltaY * lines)) * (event.ctrlKey ? 6 : 1);
    this.dispatchEvent(new Event("grab"));
    if (this.mode === "orbit") return this.#camera.dolly(Math.exp(amount * WHEEL));
    this.speed = Math.min(4, Math.max(-4, this.speed - amount * WHEEL_SPEED));
    this.dispatchEvent(new Event("mode"));
    this.dispatchEvent(new Event("speed"));
  }

  #key(event, down) {
    const name = event.code;
    this.fast = event.shiftKey;
    if (!down) return void this.#held.delete(name);
    if (!(name in MOVES) || event.ctrlKey || event.metaKey || event.altKey || typing(event)) return;
    event.preventDefault();
    this.#held.add(name);
    this.dispatchEvent(new Event("grab"));
    if (!this.#frame) this.#frame = requestAnimationFrame((now) => this.#glide(now, now - 16));
  }

  /** Move while keys are held; the loop ends with them. */
  #glide(now, before) {
    this.#frame = 0;
    if (!this.#held.size) return;
    const seconds = Math.min(0.1, (now - before) / 1000), boost = this.fast ? 3 : 1;
    let [right, down, forward, yaw, pitch, near] = [0, 0, 0, 0, 0, 0];
    for (const name of this.#held) {
      const [r, d, f, y, p, n] = MOVES[name];
      right += r, down += d, forward += f, yaw += y, pitch += p, near += n;
    }
    const step = this.pace * boost * seconds, angle = KEY_TURN * seconds * (this.fast ? 2 : 1);
    if (right || down || forward) this.#camera.move(right * step, down * step, forward * step);
    if (near) this.#camera.dolly(Math.exp(-near * seconds * 1.5 * boost));
    if (yaw || pitch) {
      if (this.mode === "orbit") this.#camera.orbit(yaw * angle, pitch * angle);
      else this.#camera.look(-yaw * angle, -pitch * angle);
    }
    this.#frame = requestAnimationFrame((next) => this.#glide(next, now));
  }
}

// right, down, forward, yaw, pitch, nearer
const MOVES = {
  KeyW: [0, 0, 1, 0, 0, 0], KeyS: [0, 0, -1, 0, 0, 0], KeyA: [-1, 0, 0, 0, 0, 0], KeyD: [1, 0, 0, 0, 0, 0],
  KeyE: [0, -1, 0, 0, 0, 0], KeyQ: [0, 1, 0, 0, 0, 0],
  ArrowLeft: [0, 0, 0, -1, 0, 0], ArrowRight: [0, 0, 0, 1, 0, 0], ArrowUp: [0, 0, 0, 0, -1, 0], ArrowDown: [0, 0, 0, 0, 1, 0],
  Equal: [0, 0, 0, 0, 0, 1], NumpadAdd: [0, 0, 0, 0, 0, 1], Minus: [0, 0, 0, 0, 0, -1], NumpadSubtract: [0, 0, 0, 0, 0, -1],
};

/** Whether a key belongs to a field, a slider or a menu just now; letters mean nothing to a slider. */
export function typing({ target, key }) {
  if (!(target instanceof Element)) return false;
  if (target.closest("input[type=range], [role=slider]")) return /^(Arrow|Page|Home|End)/.test(key);
  if (target.closest("input[type=checkbox], input[type=color]")) return key === " " || key === "Enter";
  return target.closest("input, select, textarea, dialog") !== null;
}
