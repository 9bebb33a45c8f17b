// Camera and methods in the address: #p=eye&q=rotation&c=pivot&f=field of view&u=up&m=method~view,…&d=divider
import * as V from "./vectors.js";

const digits = (value) => String(Number(value.toPrecision(7)));
const list = (values) => values.map(digits).join(",");

export function written(camera, draw, split) {
  const parts = [
    ["p", list(camera.eye)], ["q", list(V.quaternionOf(camera.rotation))], ["c", list(camera.pivot)],
    ["f", digits(camera.fov)], ["u", list(camera.up)],
    ["m", draw.sides.map(({ method, show }) => (show === "picture" ? method : `${method}~${show}`)).join(",")],
  ];
  if (draw.sides.length > 1) parts.push(["d", digits(split)]);
  return "#" + parts.map(([key, value]) => `${key}=${value}`).join("&");
}

/** Camera and methods of an address, or null if it has no valid camera. */
export function read(hash) {
  const fields = new URLSearchParams(hash.replace(/^#/, ""));
  const numbers = (key, count) => {
    const values = (fields.get(key) ?? "").split(",").map((text) => (text.trim() ? Number(text) : NaN));
    return values.length === count && values.every(Number.isFinite) ? values : undefined;
  };
  const eye = numbers("p", 3), quaternion = numbers("q", 4);
  if (!eye || !quaternion || Math.hypot(...quaternion) < 1e-6) return null;
  const up = numbers("u", 3);
  return {
    eye, rotation: V.rotationOf(quaternion), pivot: numbers("c", 3), fov: numbers("f", 1)?.[0],
    up: up && Math.hypot(...up) > 1e-6 ? V.normalized(up) : undefined,
    sides: (fields.get("m") ?? "").split(",").filter(Boolean).slice(0, 2).map((text) => {
      const [method, show = "picture"] = text.split("~");
      return { method, show };
    }),
    split: numbers("d", 1)?.[0],
  };
}
