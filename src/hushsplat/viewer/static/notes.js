// Short messages over the picture.

const SHOWN_MS = { note: 3500, error: 8000 };
let area = null;

/** Shows a message for a while; one that lasts is removed by who has asked for it. */
export function note(text, kind = "note", lasts = false) {
  area ??= document.getElementById("notes");
  const same = [...area.children].find((child) => child.textContent === text);
  if (same) return same;
  const element = document.createElement("div");
  element.className = `note ${kind}`;
  element.textContent = text;
  area.append(element);
  while (area.children.length > 3) area.firstChild.remove();
  if (!lasts) setTimeout(() => element.remove(), SHOWN_MS[kind]);
  return element;
}
export const showError = (text) => note(text, "error");
