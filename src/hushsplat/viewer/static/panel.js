// Menus and sliders: methods and settings of the "draw" message, and what the server says about its frames.
import { address } from "./connection.js";
import { SETTINGS } from "./settings.js";
import * as V from "./vectors.js";

const $ = (id) => document.getElementById(id);
const UPS = { "−y": [0, -1, 0], "+y": [0, 1, 0], "+z": [0, 0, 1], "−z": [0, 0, -1], "+x": [1, 0, 0], "−x": [-1, 0, 0] };
const SKY = [[0.45, 0.62, 0.86], [0.3, 0.28, 0.26]]; // above and below
const TELL_EVERY_MS = 200; // numbers of moving frames: faster nobody reads, and text takes its time to draw
const option = (value, text, disabled = false) => Object.assign(document.createElement("option"), { value, textContent: text, disabled });

export class Panel extends EventTarget {
  #hello = null;
  #scene = null;
  #defaults = null;
  #frames = []; // when they were shown
  #toldAt = 0;
  #thumbnails = false;
  held = false; // by a pointer
  #shown = 0; // scenes: the browser keeps pictures by their addresses

  constructor(camera, controls) {
    super();
    this.camera = camera;
    this.controls = controls;
    this.draw = null;
    this.#wire();
  }

  get scene() { return this.#scene; }
  get limits() { return this.#hello; }
  #changed() { this.#reflect(); this.dispatchEvent(new Event("draw")); }

  /** Fill the menus from the hello message; a page that connects again keeps its own choices. */
  setChoices(hello) {
    const first = this.#hello === null;
    this.#hello = hello;
    this.#defaults = hello.draw;
    if (first) this.draw = structuredClone({ ...hello.draw, gamma: null, adapt: true, background: null });
    for (const id of ["show-a", "show-b"]) {
      $(id).replaceChildren(option("picture", "the picture"), ...hello.views.map(({ name, title }) => option(name, title)));
    }
  }

  show(scene) {
    this.#scene = scene;
    this.#shown += 1;
    document.title = `${scene.name} · hushsplat`;
    $("scene-name").textContent = scene.name;
    this.showCount(scene.gaussians);
    $("close-file").hidden = scene.own;
    for (const id of ["method-a", "method-b"]) {
      $(id).replaceChildren(...this.#hello.methods.map(({ name, title }) => {
        const missing = this.#drawnBy(name) !== name;
        const made = option(name, missing ? `${name} (not for this scene)` : name, missing);
        made.title = missing ? `without payload ${this.#drawnBy(name)} draws it` : title;
        return made;
      }));
    }
    $("place").replaceChildren(...scene.places.map((place, index) => option(index, place.name)));
    this.#thumbnails = false;
    $("row-photograph").hidden = !scene.lenses.length;
    this.showThumbnails();
    this.draw.sides = this.#fitting(this.draw.sides);
    this.#reflect();
  }

  /** Small pictures of the places, once the panel is open; those of a long list when they are scrolled to. Keys have the menu. */
  showThumbnails() {
    if (this.#thumbnails || !this.#scene || $("panel").hidden) return;
    this.#thumbnails = true;
    $("thumbnails").replaceChildren(...this.#scene.places.map(({ name }, index) => {
      const button = Object.assign(document.createElement("button"), { title: name, ariaLabel: name, tabIndex: -1 }), image = new Image();
      Object.assign(image, { loading: "lazy", alt: "", width: 84, height: 56 });
      image.src = address(`place/${index}`, { session: this.#scene.session, scene: this.#shown });
      button.append(image);
      button.onclick = () => this.goTo(index);
      return button;
    }));
  }

  /** The method that draws this scene when another one is asked for: its fallback where the payload is missing. */
  #drawnBy(method) {
    const fallback = this.#hello.methods.find(({ name }) => name === method)?.fallback;
    return fallback && !this.#scene.payload ? fallback : method;
  }

  /** Sides that this server and this scene can draw. */
  #fitting(sides) {
    const fitting = sides.filter(({ method }) => this.#hello.methods.some(({ name }) => name === method)).map(({ method, show }) => {
      const side = { method: this.#drawnBy(method), show };
      const known = this.#hello.views.some(({ name }) => name === show);
      return this.#learned(side) && known ? side : { ...side, show: "picture" };
    });
    return fitting.length ? fitting : this.#defaults.sides.map((side) => ({ ...side }));
  }

  setSides(sides) {
    this.draw.sides = this.#fitting(sides);
    this.#changed();
  }

  toggleSplit() {
    const { sides } = this.draw;
    const other = sides[0].method === "raw" ? "hush" : "raw";
    this.#uncover();
    this.setSides(sides.length > 1 ? [sides[0]] : [sides[0], this.remembered ?? { method: other, show: "picture" }]);
  }

  /** The second side shows a method, no photograph. */
  #uncover() {
    if (!$("photograph").checked) return;
    $("photograph").checked = false;
    this.dispatchEvent(new Event("photograph"));
  }

  nextMethod(step) {
    const names = this.#hello.methods.map(({ name }) => name).filter((name) => this.#drawnBy(name) === name);
    const { sides } = this.draw;
    const at = names.indexOf(sides[0].method);
    this.setSides([{ ...sides[0], method: names[(at + step + names.length) % names.length] }, ...sides.slice(1)]);
  }

  nextView(step) {
    const names = ["picture", ...this.#hello.views.map(({ name }) => name)];
    const [first, ...rest] = this.draw.sides;
    const method = this.#learned(first) ? first.method : this.#fitting([{ method: "temporal", show: "picture" }])[0].method;
    this.setSides([{ method, show: names[(names.indexOf(first.show) + step + names.length) % names.length] }, ...rest]);
  }

  #learned({ method }) { return this.#hello.methods.find(({ name }) => name === method)?.learned; }

  goTo(index) {
    const place = this.#scene.places[index];
    if (!place) return;
    $("place").value = index;
    this.dispatchEvent(new CustomEvent("place", { detail: place }));
  }

  stepPlace(step) {
    const count = this.#scene.places.length;
    this.goTo((Number($("place").value) + step + count) % count);
  }

  #wire() {
    $("method-a").onchange = () => this.setSides([{ ...this.draw.sides[0], method: $("method-a").value }, ...this.draw.sides.slice(1)]);
    $("method-b").onchange = () => {
      this.#uncover();
      this.remembered = { ...this.draw.sides[1], method: $("method-b").value };
      this.setSides([this.draw.sides[0], this.remembered]);
    };
    $("split").onclick = () => this.toggleSplit();
    $("show-a").onchange = () => this.#showView(0, $("show-a").value);
    $("show-b").onchange = () => this.#showView(1, $("show-b").value);
    $("place").onchange = () => this.goTo(Number($("place").value));
    $("photograph").onchange = () => this.dispatchEvent(new Event("photograph"));
    $("place-before").onclick = () => this.stepPlace(-1);
    $("place-next").onclick = () => this.stepPlace(1);
    $("mode-orbit").onclick = () => this.controls.setMode("orbit");
    $("mode-fly").onclick = () => this.controls.setMode("fly");
    this.controls.addEventListener("mode", () => this.#reflectCamera());
    this.camera.addEventListener("change", () => this.#reflectCamera());
    $("fov").oninput = () => this.camera.place({ fov: Number($("fov").value) });
    $("speed").oninput = () => { this.controls.speed = Number($("speed").value); this.#reflectCamera(); };
    $("level").onclick = () => this.camera.flyTo(this.camera.leveled());
    for (const name of Object.keys(UPS)) $("up").append(option(name, name));
    $("up").append(option("view", "as I see it now"), option("other", "as guessed"));
    $("up").onchange = () => this.setUp($("up").value);
    ["front", "right", "back", "left", "top", "below"].forEach((side, index) => {
      const button = Object.assign(document.createElement("button"), { className: "small", textContent: side, title: `Key ${index + 1}` });
      button.onclick = () => this.lookFrom(index);
      $("sides").append(button);
    });
    $("background").onchange = () => this.#setBackground($("background").value);
    $("background-color").oninput = () => this.#setBackground("color");
    $("background-picture").onclick = () => this.dispatchEvent(new Event("environment"));
    $("adapt").onchange = () => { this.draw.adapt = $("adapt").checked; this.#changed(); };
    $("samples").oninput = () => { this.draw.samples = 2 ** Number($("samples").value); this.#changed(); };
    for (const setting of SETTINGS) {
      const input = addSlider($("denoiser-settings"), setting);
      input.oninput = () => { this.draw.config[setting.name] = valueOf(setting, Number(input.value)); this.#changed(); };
    }
    $("gamma").oninput = () => { this.draw.gamma = this.#defaults.gamma * 2 ** Number($("gamma").value); this.#changed(); };
    $("defaults").onclick = () => {
      this.draw = { ...this.draw, samples: this.#defaults.samples, config: { ...this.#defaults.config }, gamma: null };
      this.#changed();
    };
  }

  /** The menu says what is drawn. */
  #reflectBackground() {
    const { background } = this.draw, hex = (rgb) => `#${rgb.map((v) => Math.round(255 * v).toString(16).padStart(2, "0")).join("")}`;
    const plain = background && background !== "environment" && background.length === 1;
    if (!plain) $("background").value = !background ? "" : background === "environment" ? "environment" : "sky";
    else if ($("background").value !== "color") $("background").value = hex(background[0]);
    if ($("background").selectedIndex < 0) $("background").value = "color";
    $("background-color").hidden = $("background").value !== "color";
    $("background-picture").hidden = $("background").value !== "environment";
  }

  #setBackground(name) {
    const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16) / 255);
    if (name === "environment") {
      this.#reflectBackground(); // until the picture has been sent; it may be refused, or none be chosen
      return void this.dispatchEvent(new Event("environment"));
    }
    this.draw.background = !name ? null : name === "sky" ? SKY : [rgb(name === "color" ? $("background-color").value : name)];
    this.#changed();
  }

  /** The picture all around has been sent. */
  showEnvironment() {
    this.draw.background = "environment";
    this.#changed();
  }

  #showView(index, show) {
    const sides = this.draw.sides.map((side) => ({ ...side }));
    if (show !== "picture" && !this.#learned(sides[index])) sides[index].method = "temporal"; // only learned denoisers have views
    sides[index].show = show;
    this.setSides(sides);
  }

  /** Another way up; the horizon follows. */
  setUp(name) {
    const up = name === "view" ? V.scale(this.camera.down, -1) : UPS[name] ?? this.#scene.up;
    this.camera.up = V.normalized(up);
    this.camera.flyTo(this.camera.leveled());
    this.#reflectCamera();
  }

  nextUp() {
    const names = Object.keys(UPS);
    this.setUp(names[(names.indexOf($("up").value) + 1) % names.length]);
  }

  /** From the front, the right, the back, the left, the top or below, about the pivot. */
  lookFrom(index) {
    const up = this.camera.up;
    const axis = [0, 1, 2].map((k) => [0, 1, 2].map((j) => Number(j === k)));
    const level = axis.map((a) => V.subtract(a, V.scale(up, V.dot(a, up)))).filter((a) => V.length(a) > 0.5);
    const front = V.normalized(V.scale(level[level.length - 1], -1)), right = V.normalized(V.cross(V.scale(front, -1), up));
    const almost = V.scale(front, 0.06); // straight along up there is no horizon
    const from = [front, right, V.scale(front, -1), V.scale(right, -1), V.add(up, almost), V.add(V.scale(up, -1), almost)][index];
    this.camera.flyTo(this.camera.from(V.normalized(from)));
  }

  #reflectCamera() {
    const { camera, controls } = this;
    $("mode-orbit").setAttribute("aria-checked", controls.mode === "orbit");
    $("mode-fly").setAttribute("aria-checked", controls.mode === "fly");
    setSlider("fov", Math.round(camera.fov), `${Math.round(camera.fov)}°`);
    setSlider("speed", controls.speed, `×${(2 ** controls.speed).toPrecision(2)}`);
    const name = Object.keys(UPS).find((key) => V.length(V.subtract(UPS[key], camera.up)) < 1e-3);
    if ($("up").value !== name) $("up").value = name ?? "view";
  }

  #reflect() {
    const { sides, samples, config, gamma } = this.draw;
    const split = sides.length > 1;
    document.body.classList.toggle("split", split);
    $("split").setAttribute("aria-pressed", split);
    $("choice-b").hidden = $("row-show-b").hidden = !split;
    $("method-a").value = sides[0].method;
    $("show-a").value = sides[0].show;
    if (split) {
      $("method-b").value = sides[1].method;
      $("show-b").value = sides[1].show;
    }
    const title = (side) => `${side.method}: ${this.#hello.methods.find(({ name }) => name === side.method)?.title}`;
    $("method-help").textContent = sides.map(title).join(" · ");
    $("adapt").checked = this.draw.adapt;
    this.#reflectBackground();
    $("denoiser").classList.toggle("idle", !sides.some((side) => this.#learned(side)));
    setSlider("samples", Math.log2(samples), samples);
    for (const setting of SETTINGS) {
      const value = config[setting.name];
      setSlider(`setting-${setting.name}`, setting.powerOfTwo ? Math.log2(value) : value, textOf(setting, value));
    }
    setSlider("gamma", Math.log2((gamma ?? this.#defaults.gamma) / this.#defaults.gamma), (gamma ?? this.#defaults.gamma).toPrecision(3));
  }

  /** Times, sizes and legends of the frame that is shown. */
  showFrameInfo(header, latencyMs) {
    const now = performance.now();
    this.#frames = [...this.#frames.filter((time) => now - time < 1000), now];
    if (header.moving && now - this.#toldAt < TELL_EVERY_MS) return;
    this.#toldAt = now;
    const total = Object.values(header.passes_ms).reduce((sum, ms) => sum + ms, 0);
    $("stat-fps").textContent = `${this.#frames.length} fps · ${total.toFixed(0)} ms`;
    const percent = header.scale < 1 ? ` (${Math.round(100 * header.scale)} %)` : "";
    $("stat-size").textContent = `${header.width}×${header.height}${percent}`;
    $("stat-refine").textContent = header.still_limit > 1 && !header.moving ? `${header.still_frames}/${header.still_limit}` : "";
    this.#legends(header);
    if ($("panel").hidden) return;
    const rows = [...Object.entries(header.passes_ms), ["total", total]];
    if (latencyMs !== null) rows.push(["input to picture", latencyMs]);
    const longest = Math.max(total, latencyMs ?? 0, 1e-6);
    $("passes").tBodies[0].replaceChildren(...rows.map(([name, ms]) => {
      const row = document.createElement("tr"), bar = document.createElement("i");
      bar.style.width = `${(100 * ms) / longest}%`;
      for (const content of [name, bar, `${ms.toFixed(1)} ms`]) row.insertCell().append(content);
      return row;
    }));
  }

  /** How many Gaussians are drawn: of a streamed scene more, while it is refined. */
  showCount(gaussians) {
    $("scene-size").textContent = `${gaussians.toLocaleString("en")} ${this.#scene.kind}`;
  }

  /** Nothing is drawn until something changes: a hand that is on the picture may do so any moment. */
  showResting() {
    $("stat-fps").textContent = this.held ? "held" : "resting";
  }

  showHeld(held, finished) {
    this.held = held;
    if (!["resting", "held"].includes($("stat-fps").textContent)) return;
    if (held || finished) this.showResting();
    else $("stat-fps").textContent = ""; // until the next frame
  }

  #legends(header) {
    const key = JSON.stringify([header.legends, header.sides]);
    if (key === this.legendKey) return;
    this.legendKey = key;
    $("legends").replaceChildren(...header.legends.flatMap((legend, index) => {
      if (!legend) return [];
      const element = document.createElement("div"), image = new Image(), ticks = document.createElement("div");
      element.className = `legend ${index ? "right" : "left"}`;
      image.src = this.#hello.views.find(({ name }) => name === header.sides[index].show).bar;
      image.alt = "";
      image.classList.toggle("wheel", legend.wheel);
      ticks.className = "ticks";
      for (const value of legend.ticks) ticks.append(Object.assign(document.createElement("span"), { textContent: Number(value.toPrecision(3)) }));
      element.append(legend.title, image, ticks);
      return [element];
    }));
  }
}

/** A slider of a setting that is declared in hushsplat.spec; see settings.js. */
function addSlider(container, { name, title, help, min, max, step }) {
  const row = Object.assign(document.createElement("div"), { className: "slider", title: help });
  const input = Object.assign(document.createElement("input"), { id: `setting-${name}`, type: "range", min, max, step });
  const label = Object.assign(document.createElement("label"), { htmlFor: input.id, textContent: title });
  row.append(label, input, document.createElement("output"));
  container.append(row);
  return input;
}

/** The setting at a position of its slider. */
function valueOf({ powerOfTwo }, position) {
  if (!powerOfTwo) return position;
  const value = 2 ** position;
  return value < 1 ? Number(value.toPrecision(2)) : Math.round(value);
}

function textOf({ powerOfTwo, step, unit }, value) {
  const decimals = (String(step).split(".")[1] ?? "").length;
  const number = powerOfTwo ? String(value) : value.toFixed(decimals);
  return unit ? `${number} ${unit}` : number;
}

function setSlider(id, value, text) {
  const slider = $(id);
  if (document.activeElement !== slider || Math.abs(Number(slider.value) - value) > Number(slider.step)) slider.value = value;
  slider.parentElement.querySelector("output").textContent = text;
}
