// The list of keys and gestures; main.js does what they say.

export const HELP = [
  ["Look around", [
    ["drag, one finger", "turn about the pivot (orbit) or on the spot (fly)"],
    ["right drag, ⇧ drag, two fingers", "move sideways"],
    ["wheel, pinch", "nearer and farther; when flying the wheel sets the speed"],
    ["double click, double tap", "glide to this point and turn about it"],
    ["← ↑ → ↓", "turn"],
    ["W A S D", "move; Q E down and up, ⇧ faster"],
    ["+ −", "nearer and farther"],
  ]],
  ["Places", [
    ["O F", "orbit, fly"],
    ["H", "home: first camera, up as it was; in a room you look around, else you orbit"],
    ["1 … 6", "front, right, back, left, top, below"],
    ["[ ]", "place before, next place"],
    ["U", "another axis is up"],
    ["L", "level the horizon"],
  ]],
  ["Picture", [
    ["M", "next method, ⇧M the one before"],
    ["X", "compare two methods"],
    ["J", "the photograph of a place beside the picture, with a capture"],
    [", .", "move the divider"],
    ["V", "views: intermediate results of temporal, ⇧V back"],
    ["G", "settings and times"],
  ]],
  ["Tracks", [
    ["T", "show or hide the track"],
    ["B", "begin and end a recording"],
    ["space", "play and pause"],
    ["K", "key pose here"],
    ["Delete", "remove the chosen key"],
    ["Z", "undo the last change of the track"],
    ["I O", "on the strip: begin and end here"],
  ]],
  ["Keep", [
    ["P", "screenshot; drop it here again to go back to its camera"],
    ["C", "copy a link to this camera"],
    ["?", "this list"],
    ["Esc", "close what is open"],
  ]],
];

/** Keys, gestures, and the methods that the server has. */
export function fillHelp(container, methods = []) {
  const named = ["Methods", methods.map(({ name, title }) => [name, title])];
  container.replaceChildren(...[...HELP, ...(methods.length ? [named] : [])].map(([title, rows]) => {
    const list = document.createElement("dl");
    list.append(Object.assign(document.createElement("h3"), { textContent: title }));
    for (const [keys, meaning] of rows) {
      const term = document.createElement("dt");
      const short = title !== "Methods" && keys.split(" ").every((word) => word.length <= 6 && word !== "one" && !/drag|wheel|click|tap|pinch|two|right/.test(word));
      if (short) keys.split(" ").forEach((word) => term.append(word === "…" ? "…" : Object.assign(document.createElement("kbd"), { textContent: word }), " "));
      else term.textContent = keys;
      list.append(term, Object.assign(document.createElement("dd"), { textContent: meaning }));
    }
    return list;
  }));
}
