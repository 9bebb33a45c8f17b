// The canvas: shows the newest frame, one side or two, and acknowledges it.

const ROUNDING = 0.02; // of the width: small frames have whole pixels, too
const PHONE_RATIO = 1.5; // pixels of a phone are small, and its server is the same as everybody's

export class Stage extends EventTarget {
  #context;
  #bitmaps = [];
  #header = null;
  #waiting = null;
  #busy = false;
  #photograph = null;

  constructor(canvas, divider) {
    super();
    this.canvas = canvas;
    this.divider = divider;
    this.split = 0.5; // share of the width that the first side has
    this.#context = canvas.getContext("2d", { alpha: false });
    this.#watchSize();
    this.#watchDivider();
  }

  get header() { return this.#header; }

  /** A photograph on the second side: its bitmap, and where its corners lie in the picture (shares of its width and height). */
  set photograph(photograph) {
    this.#photograph?.bitmap.close();
    this.#photograph = photograph;
    this.draw();
  }
  get photograph() { return this.#photograph; }

  get aspect() { return this.canvas.width / this.canvas.height; }

  #watchSize() {
    const observer = new ResizeObserver(([entry]) => {
      const exact = entry.devicePixelContentBoxSize?.[0], ratio = Math.min(devicePixelRatio || 1, matchMedia("(pointer: coarse)").matches ? PHONE_RATIO : Infinity);
      // The exact box can be off by a rounding only; where it is off by more it has missed the ratio.
      const pixels = (device, css) => (device && Math.abs(device - css * ratio) < 2 ? device : Math.round(css * ratio));
      const width = pixels(exact?.inlineSize, entry.contentRect.width), height = pixels(exact?.blockSize, entry.contentRect.height);
      if (!width || !height || (width === this.canvas.width && height === this.canvas.height)) return;
      this.canvas.width = width;
      this.canvas.height = height;
      this.draw();
      this.dispatchEvent(new Event("resize"));
    });
    try {
      observer.observe(this.canvas, { box: "device-pixel-content-box" });
    } catch {
      observer.observe(this.canvas); // browsers that do not know the box
    }
  }

  #watchDivider() {
    const set = (share) => {
      this.split = Math.min(1, Math.max(0, share));
      this.draw();
    };
    this.divider.addEventListener("pointerdown", (event) => {
      this.divider.setPointerCapture(event.pointerId);
      event.preventDefault();
      this.divider.focus({ preventScroll: true });
    });
    this.divider.addEventListener("pointermove", (event) => {
      if (this.divider.hasPointerCapture(event.pointerId)) set(event.clientX / this.canvas.clientWidth);
    });
    this.divider.addEventListener("keydown", (event) => {
      const step = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
      if (step === undefined) return;
      event.preventDefault();
      event.stopPropagation();
      set(this.split + step);
    });
    this.move = (step) => set(this.split + step);
  }

  /** Take a frame; if several come while one is being decoded, only the last is shown. All are acknowledged. */
  async show(header, parts) {
    if (this.#waiting) this.#acknowledge(this.#waiting.header);
    this.#waiting = { header, parts };
    if (this.#busy) return;
    this.#busy = true;
    while (this.#waiting) {
      const next = this.#waiting;
      this.#waiting = null;
      try {
        const bitmaps = await Promise.all(next.parts.map((part) => createImageBitmap(new Blob([part], { type: "image/jpeg" }))));
        this.#bitmaps.forEach((old) => old.close());
        this.#bitmaps = bitmaps;
        this.#header = next.header;
        this.draw();
        this.dispatchEvent(new CustomEvent("shown", { detail: next.header }));
      } catch (error) {
        console.error(error); // a picture that cannot be decoded does not end the others
      } finally {
        this.#acknowledge(next.header);
      }
    }
    this.#busy = false;
  }

  #acknowledge(header) { this.dispatchEvent(new CustomEvent("acknowledge", { detail: header.frame })); }

  /** As high as the canvas: until a frame of its new shape comes, a wider window shows no more, and nothing is stretched. */
  #drawWhole(bitmap) {
    const { width, height } = this.canvas, wide = (bitmap.width / bitmap.height) * height;
    const across = Math.abs(wide - width) < ROUNDING * width ? width : wide;
    if (across < width) this.#context.clearRect(0, 0, width, height);
    this.#context.drawImage(bitmap, (width - across) / 2, 0, across, height);
  }

  draw() {
    const { width, height } = this.canvas;
    const beside = this.#photograph, two = this.#bitmaps.length === 2 || Boolean(beside);
    this.divider.hidden = !two;
    this.canvas.parentElement.dataset.beside = beside ? `photograph ${beside.name}` : "";
    if (!this.#bitmaps.length) return;
    this.#context.imageSmoothingQuality = this.#header.moving ? "low" : "high"; // without a GPU "high" takes 12 ms more
    this.#drawWhole(this.#bitmaps[0]);
    if (!two) return;
    const column = Math.round(this.split * width);
    this.#context.save();
    this.#context.beginPath();
    this.#context.rect(column, 0, width - column, height);
    this.#context.clip();
    if (beside) {
      const { bitmap, box: [left, top, right, bottom] } = beside;
      this.#context.drawImage(bitmap, left * width, top * height, (right - left) * width, (bottom - top) * height);
    } else this.#drawWhole(this.#bitmaps[1]);
    this.#context.restore();
    this.divider.style.left = `${100 * this.split}%`;
    this.divider.setAttribute("aria-valuenow", Math.round(100 * this.split));
  }
}
