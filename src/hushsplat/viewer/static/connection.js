// The WebSocket: JSON both ways, pictures from the server; connects again after a loss.

const FIRST_WAIT_MS = 400, LONGEST_WAIT_MS = 5000;
const token = new URLSearchParams(location.search).get("token");

/** An address of this server, with the token if there is one. */
export function address(path, query = {}) {
  const url = new URL(path, location.href.split(/[?#]/)[0]);
  for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
  if (token) url.searchParams.set("token", token);
  return url;
}

/** What the page keeps until its tab is closed. */
export function stored(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null; // a frame of another site may have no storage
  }
}
export function store(name, value) {
  try {
    if (value) sessionStorage.setItem(name, value);
    else sessionStorage.removeItem(name);
  } catch { /* then it is not there after a reload */ }
}

export class Connection extends EventTarget {
  #socket = null;
  #wait = FIRST_WAIT_MS;

  /** The key of a dropped scene, by which the server knows it for a few minutes after the page has gone. */
  get file() { return stored("hushsplat-file"); }
  set file(key) { store("hushsplat-file", key); }

  get open() { return this.#socket?.readyState === WebSocket.OPEN; }

  connect() {
    const url = address("ws", this.file ? { file: this.file } : {});
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:";
    const socket = this.#socket = new WebSocket(url);
    socket.binaryType = "arraybuffer";
    socket.onmessage = ({ data }) => {
      this.#wait = FIRST_WAIT_MS;
      if (typeof data === "string") {
        const message = JSON.parse(data);
        this.dispatchEvent(new CustomEvent(message.type, { detail: message }));
      } else {
        const { header, parts } = unpacked(data);
        this.dispatchEvent(new CustomEvent(header.kind, { detail: { header, parts } }));
      }
    };
    socket.onclose = () => {
      if (this.#socket !== socket) return;
      this.dispatchEvent(new Event("away"));
      setTimeout(() => this.connect(), this.#wait);
      this.#wait = Math.min(LONGEST_WAIT_MS, this.#wait * 1.6);
    };
  }

  send(message) {
    if (this.open) this.#socket.send(JSON.stringify(message));
  }
}

/** Four bytes say how long the JSON is that follows; the pictures follow it. */
function unpacked(buffer) {
  const size = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, size)));
  let at = 4 + size;
  const parts = header.lengths.map((length) => new Uint8Array(buffer, (at += length) - length, length));
  return { header, parts };
}
