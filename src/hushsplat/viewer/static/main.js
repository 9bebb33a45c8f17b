// Connects input, the server's messages and the page.
import { Camera } from "./camera.js";
import { address, Connection, store, stored } from "./connection.js";
import { Controls, typing } from "./controls.js";
import { download, trackInPng, upload } from "./files.js";
import { fillHelp } from "./help.js";
import { partRefusal, refusal, sceneOf, sceneOfFiles } from "./kinds.js";
import * as link from "./link.js";
import { showError, note } from "./notes.js";
import { Panel } from "./panel.js";
import { Stage } from "./stage.js";
import { Timeline } from "./timeline.js";
import * as V from "./vectors.js";
import { Walls } from "./walls.js";

const $ = (id) => document.getElementById(id);
const camera = new Camera();
const stage = new Stage($("picture"), $("divider"));
const controls = new Controls(camera, $("picture"));
const panel = new Panel(camera, controls);
const connection = new Connection();
let session = "";
const timeline = new Timeline(camera, stage, () => session);

// --- camera messages: at once, but at most one for each frame that the browser draws

const LOOK_EVERY_MS = 12;
let sequence = 0, lookFrame = 0, lookedAt = 0, linkTimer = 0, restTimer = 0;
let finished = false; // nothing more is drawn of this camera
const sentAt = new Map(); // sequence: when

function sendLook() {
  lookFrame = 0;
  if (!panel.scene) return; // no camera yet
  const { width, height } = stage.canvas;
  sequence += 1;
  lookedAt = performance.now();
  sentAt.set(sequence, lookedAt);
  if (sentAt.size > 240) sentAt.delete(sentAt.keys().next().value);
  connection.send({ type: "look", world_from_camera: camera.matrix, fov_y_deg: camera.fov, width, height, sequence });
}
function sendLookSoon() {
  if (!lookFrame && performance.now() - lookedAt > LOOK_EVERY_MS) sendLook();
  else lookFrame ||= requestAnimationFrame(sendLook);
  clearTimeout(restTimer); // something else is to be drawn
  finished = false;
  clearTimeout(linkTimer);
  linkTimer = setTimeout(writeLink, 400);
}
function writeLink() {
  if (panel.scene) history.replaceState(null, "", link.written(camera, panel.draw, stage.split));
}
function sendDraw() {
  connection.send({ type: "draw", ...panel.draw });
  sendLookSoon();
}
camera.addEventListener("change", sendLookSoon);
camera.addEventListener("change", showPivot);
stage.addEventListener("resize", sendLookSoon);
panel.addEventListener("draw", sendDraw);

// --- frames

connection.addEventListener("frame", ({ detail: { header, parts } }) => stage.show(header, parts));
stage.addEventListener("acknowledge", ({ detail: frame }) => connection.send({ type: "ack", frame }));
stage.addEventListener("shown", ({ detail: header }) => {
  const sent = sentAt.get(header.sequence);
  panel.showFrameInfo(header, sent === undefined || header.still_frames > 1 ? null : performance.now() - sent);
  sentAt.delete(header.sequence);
  camera.depth = header.depth;
  finished = !header.moving && header.still_frames >= header.still_limit;
  restSoon();
  if (!header.moving && controls.mode === "orbit" && !camera.knowsWalls) askForWalls();
});

/** Frames a second are not told any more when there are none. */
function restSoon() {
  clearTimeout(restTimer);
  if (finished || panel.held) restTimer = setTimeout(() => panel.showResting(), 1500);
}

// --- messages of the server

connection.addEventListener("hello", ({ detail }) => {
  $("offline").hidden = true;
  panel.setChoices(detail);
  fillHelp($("help-columns"), detail.methods);
  timeline.clearVideo();
});
let lost = false; // the dropped scene that this page had before it was loaded again
connection.addEventListener("scene", ({ detail: scene }) => {
  const before = panel.scene, isNew = session !== scene.session;
  session = scene.session;
  lost ||= Boolean(connection.file) && !scene.file;
  connection.file = scene.file ?? null; // a dropped scene is there again when the page is loaded again
  $("loading").hidden = !scene.loading;
  if (scene.loading) {
    $("loading-share").hidden = $("loading-percent").hidden = false;
    $("loading-name").textContent = `reading ${scene.name}`;
    return showProgress(scene.share);
  }
  panel.show(scene);
  enable(true);
  camera.radius = scene.radius;
  if (!before || lost || before.name !== scene.name || before.gaussians !== scene.gaussians) {
    timeline.stop(); // what was recorded belongs to the scene before
    camera.up = scene.up;
    controls.setMode(scene.inside ? "fly" : "orbit");
    if (before || lost || !openLink()) visit(scene.places[0], 0);
  }
  if (!before) timeline.restore(stored("hushsplat-track"), scene.name);
  if (lost) note("the dropped scene is not kept any more; drop it again");
  lost = false;
  sendDraw();
  if (isNew && environment && panel.draw.background === "environment") sendEnvironment(environment); // the server has started again
});
let onRead = null; // what shows how much of a dropped file is read
connection.addEventListener("progress", ({ detail }) => (onRead ?? showProgress)(detail.share));
function showProgress(share) {
  $("loading-share").value = share;
  $("loading-percent").textContent = `${Math.round(100 * share)} %`;
}
/** What needs a scene waits for it. */
function enable(enabled) {
  for (const id of ["home", "shot", "link", "tracks", "settings", "split", "method-a", "method-b"]) $(id).disabled = !enabled;
}
enable(false);
connection.addEventListener("refined", ({ detail }) => {
  panel.showCount(detail.gaussians);
  panel.hasLevels = detail.levels;
});
connection.addEventListener("error", ({ detail }) => {
  if (panel.scene) return void showError(detail.message);
  $("loading-name").textContent = detail.message; // it does not come any more
  $("loading-share").hidden = $("loading-percent").hidden = true;
});
connection.addEventListener("full", ({ detail }) => showError(detail.message));
connection.addEventListener("video", ({ detail }) => timeline.showVideoState(detail));
connection.addEventListener("home", ({ detail: { place } }) => visit(place));
connection.addEventListener("away", () => { $("offline").hidden = false; });

// --- walls that the eye does not pass through while it turns about the pivot

function askForWalls() {
  camera.walls = new Walls({ point: camera.pivot, near: camera.distance / 2 }); // asked for
  connection.send({ type: "walls", point: camera.pivot, near: camera.walls.near });
}
connection.addEventListener("walls", ({ detail }) => { camera.walls = new Walls(detail); });

addEventListener("pagehide", () => store("hushsplat-track", panel.scene && timeline.kept(panel.scene.name)));

// --- places

function visit(place, seconds) {
  // A phone held upright shows a narrow strip of what the place was chosen for: widen the lens.
  const widened = Math.tan((place.fov_y_deg * Math.PI) / 360) * Math.max(1, 0.75 / stage.aspect);
  camera.flyTo({
    eye: V.placeOf(place.world_from_camera), rotation: V.columnsOf(place.world_from_camera), fov: (Math.atan(widened) * 360) / Math.PI,
    distance: place.distance ?? (camera.distance > 1e-6 && panel.scene ? Math.min(camera.distance, 2 * camera.radius) : 1),
  }, seconds);
}
panel.addEventListener("place", ({ detail: place }) => visit(place));

// --- the photograph of a place on the second side, while the camera stands where it was taken

let photographs = 0; // requests
let seen = false; // a photograph, before the camera left it
/** The place that the camera is at, with a photograph; -1 if there is none. */
function photographedPlace() {
  const { matrix } = camera, near = (place) => place.world_from_camera.every((row, i) => row.every((v, j) => Math.abs(v - matrix[i][j]) < 1e-5 * (1 + camera.radius)));
  return panel.scene ? panel.scene.places.slice(0, panel.scene.lenses.length).findIndex(near) : -1;
}
async function showPhotograph() {
  const index = $("photograph").checked ? photographedPlace() : -1;
  if (index < 0) {
    if (seen && $("photograph").checked && panel.scene.lenses.length) note("the photograph shows where it was taken; [ and ] go there");
    seen = false;
    return void (stage.photograph = null);
  }
  const request = photographs += 1, lens = panel.scene.lenses[index];
  const answer = await fetch(address(`photograph/${index}`, { session }));
  if (!answer.ok) return void showError((await answer.json()).error);
  const bitmap = await createImageBitmap(await answer.blob());
  if (request !== photographs || photographedPlace() !== index) return bitmap.close();
  const [width, height, fx, fy, cx, cy] = lens, half = Math.tan((camera.fov * Math.PI) / 360);
  const across = (x) => 0.5 + (x - cx) / fx / (2 * half * stage.aspect), down = (y) => 0.5 + (y - cy) / fy / (2 * half);
  seen = true;
  stage.photograph = { bitmap, index, name: panel.scene.places[index].name, box: [across(0), down(0), across(width), down(height)] };
}
let photographTimer = 0;
function photographSoon() {
  photographs += 1;
  if (stage.photograph) stage.photograph = null;
  clearTimeout(photographTimer);
  if ($("photograph").checked) photographTimer = setTimeout(showPhotograph, 60); // when a flight has ended
}
camera.addEventListener("change", photographSoon);
stage.addEventListener("resize", photographSoon);
panel.addEventListener("photograph", () => {
  if ($("photograph").checked && photographedPlace() < 0) panel.goTo(Number($("place").value));
  showPhotograph();
});

/** The first place; if the user chose another up direction, a camera that frames the scene with it. */
function home() {
  const { scene } = panel;
  $("place").value = 0;
  if (V.length(V.subtract(scene.up, camera.up)) < 1e-6) visit(scene.places[0]);
  else connection.send({ type: "home", up: camera.up });
}
function reset() {
  camera.up = panel.scene.up;
  controls.setMode(panel.scene.inside ? "fly" : "orbit");
  home();
}

function openLink() {
  const linked = link.read(location.hash);
  if (!linked) return false;
  if (linked.up) camera.up = linked.up;
  const distance = linked.pivot ? undefined : camera.radius;
  camera.place({ eye: linked.eye, rotation: linked.rotation, fov: linked.fov, pivot: linked.pivot, distance });
  if (linked.split !== undefined) stage.move(linked.split - stage.split);
  if (linked.sides.length) panel.setSides(linked.sides);
  return true;
}
addEventListener("hashchange", openLink);

let requests = 0, pivotTimer = 0;
const probes = new Map();
controls.addEventListener("pick", ({ detail }) => {
  requests += 1;
  probes.set(requests, true);
  sendLook();
  connection.send({ type: "probe", request: requests, x: detail.x, y: detail.y });
});
connection.addEventListener("probe", ({ detail: { request, point } }) => {
  if (!probes.delete(request)) return;
  if (!point) return void note("there is nothing to turn about");
  controls.setMode("orbit");
  camera.flyTo(camera.towards(point), 0.7);
  showPivot(null, 1600);
});

/** A ring about the pivot while it matters. */
function showPivot(_, ms = 500) {
  const place = controls.mode === "orbit" ? camera.project(camera.pivot, stage.aspect) : null;
  const ring = $("pivot");
  ring.hidden = !place;
  if (!place) return;
  ring.style.left = `${100 * place[0]}%`;
  ring.style.top = `${100 * place[1]}%`;
  if (ms <= 500 && !ring.classList.contains("seen")) return;
  ring.classList.add("seen");
  clearTimeout(pivotTimer);
  pivotTimer = setTimeout(() => ring.classList.remove("seen"), ms);
}
controls.addEventListener("hold", ({ detail: held }) => {
  connection.send({ type: "hold", held });
  panel.showHeld(held, finished);
  restSoon();
});
let speedNote = null;
controls.addEventListener("speed", () => {
  speedNote?.remove();
  speedNote = note(`speed ×${(2 ** controls.speed).toPrecision(2)}`);
});
controls.addEventListener("grab", () => {
  timeline.pause();
  camera.flight = null;
});

// --- files

function takeShot() {
  requests += 1;
  connection.send({ type: "shot", request: requests, divider: stage.split });
}
connection.addEventListener("shot", ({ detail: { parts } }) => {
  const name = panel.scene.name.replace(/\.[a-z]+$/i, "").replace(/[^\w-]+/g, "-") || "scene";
  download(new Blob([parts[0]], { type: "image/png" }), `${name}.png`);
  note("saved, with its camera inside");
});

async function openFile(file) {
  const part = partRefusal(file);
  if (part) return void showError(part);
  if (/\.(json|csv)$/i.test(file.name)) return timeline.load(file);
  if (/\.png$/i.test(file.name)) {
    const text = await trackInPng(file);
    if (!text) return void showError(`${file.name}: is no screenshot of hushsplat; there is no camera inside.`);
    return timeline.visit(new File([text], file.name));
  }
  const refused = await refusal(file);
  if (refused) return void showError(refused);
  const limit = panel.limits?.max_upload_bytes;
  if (limit === 0) return void showError("this viewer takes no files; start it with --max-upload-mb.");
  if (limit && file.size > limit) return void showError(`${file.name}: is larger than the ${Math.round(limit / 2 ** 20)} MB that this viewer takes.`);
  const progress = note(`opening ${file.name}`, "note", true);
  onRead = (share) => { progress.textContent = `reading ${file.name}: ${Math.round(100 * share)} %`; };
  try {
    await upload("scene", file, session, (share) => {
      if (share < 1) progress.textContent = `sending ${file.name}: ${Math.floor(100 * share)} %`;
      else if (!progress.textContent.startsWith("reading")) onRead?.(0);
    });
  } catch (error) {
    showError(error.message);
  } finally {
    onRead = null;
    progress.remove();
  }
}
let environment = null; // the picture all around that the server has
async function sendEnvironment(file) {
  try {
    await upload("environment", file, session);
    environment = file;
    panel.showEnvironment();
  } catch (error) {
    showError(error.message);
  }
}
panel.addEventListener("environment", () => chooseFile(".jpg,.jpeg,.png,.webp", sendEnvironment));
let onFile = openFile; // what to do with the file that is chosen
function chooseFile(kinds = "", then = openFile) {
  onFile = then;
  $("file").accept = kinds || ".ply,.splat,.spz,.sog,.json,.csv,.png";
  $("file").click();
}
$("file").onchange = () => {
  if ($("file").files[0]) onFile($("file").files[0]);
  onFile = openFile;
  $("file").value = "";
};
let dragDepth = 0;
addEventListener("dragenter", (event) => { event.preventDefault(); dragDepth += 1; $("drop").hidden = false; });
addEventListener("dragover", (event) => event.preventDefault());
addEventListener("dragleave", () => { dragDepth -= 1; if (dragDepth <= 0) $("drop").hidden = true; });
addEventListener("drop", (event) => {
  event.preventDefault();
  dragDepth = 0;
  $("drop").hidden = true;
  const { items, files } = event.dataTransfer, entry = items[0]?.webkitGetAsEntry?.();
  const scene = entry?.isDirectory ? sceneOf(entry) : files.length > 1 ? sceneOfFiles([...files]) : null;
  if (scene) scene.then(openFile).catch((error) => showError(error.message));
  else if (files[0]) openFile(files[0]);
  else showError("that is no file; drop a scene, a track or a screenshot.");
});

// --- buttons and keys

/** On a phone there is room for one of them. */
const isNarrow = () => matchMedia("(max-width: 760px), (max-height: 520px)").matches;
timeline.addEventListener("open", () => { if (isNarrow()) toggleSettings(false); });
function toggleSettings(open = $("panel").hidden) {
  if (open && isNarrow()) timeline.toggle(false);
  if (!open && $("panel").contains(document.activeElement)) $("settings").focus();
  $("panel").hidden = !open;
  $("settings").setAttribute("aria-expanded", open);
  document.body.classList.toggle("panel", open);
  panel.showThumbnails();
}
async function copyLink() {
  writeLink();
  try {
    await navigator.clipboard.writeText(location.href);
    note("the link to this camera is copied");
  } catch {
    note("the link to this camera is in the address bar");
  }
}
function toggleFullScreen() {
  if (document.fullscreenElement) document.exitFullscreen();
  else document.documentElement.requestFullscreen?.().catch(() => note("this browser does not do full screen"));
}
$("home").onclick = reset;
$("shot").onclick = takeShot;
$("link").onclick = copyLink;
$("open").onclick = () => chooseFile();
$("track-load").onclick = () => chooseFile(".json,.csv");
$("full").onclick = toggleFullScreen;
$("settings").onclick = () => toggleSettings();
$("stats").onclick = () => panel.scene && toggleSettings();
$("help").onclick = () => $("keys-help").showModal();
$("close-file").onclick = () => {
  connection.file = null;
  connection.send({ type: "close-file" });
};
$("video-cancel").onclick = () => connection.send({ type: "cancel-video" });

const KEYS = {
  o: () => controls.setMode("orbit"), f: () => controls.setMode("fly"), h: reset, l: () => camera.flyTo(camera.leveled()),
  "[": () => panel.stepPlace(-1), "]": () => panel.stepPlace(1), u: () => panel.nextUp(),
  j: () => { if (panel.scene.lenses.length) $("photograph").click(); else note("this scene came without photographs; start the viewer with --capture"); },
  m: () => panel.nextMethod(1), M: () => panel.nextMethod(-1), x: () => panel.toggleSplit(), v: () => panel.nextView(1), V: () => panel.nextView(-1),
  ",": () => stage.move(-0.03), ".": () => stage.move(0.03), g: () => toggleSettings(),
  t: () => timeline.toggle(), b: () => timeline.toggleRecording(), " ": () => timeline.togglePlay(), k: () => timeline.addKey(),
  Delete: () => timeline.removeKey(), z: () => timeline.undo(), p: takeShot, c: copyLink, "?": () => $("keys-help").showModal(),
  Escape: () => { toggleSettings(false); timeline.toggle(false); },
};
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !panel.scene || $("keys-help").open) return;
  if (event.target.id === "stats" && [" ", "Enter"].includes(event.key)) return toggleSettings();
  const onButton = event.target instanceof HTMLButtonElement && event.key === " ";
  if (onButton || (typing(event) && event.key !== "Escape")) return;
  const digit = /^[1-6]$/.test(event.key) ? Number(event.key) - 1 : -1;
  const key = event.shiftKey || event.key.length > 1 ? event.key : event.key.toLowerCase(); // also when capitals are locked
  if (digit >= 0) panel.lookFrom(digit);
  else if (key in KEYS) KEYS[key]();
  else return;
  event.preventDefault();
});

// A hand that has pressed a button or chosen from a menu is back at the picture, and so are the keys.
let byHand = false;
addEventListener("pointerdown", () => { byHand = true; }, true);
addEventListener("keydown", () => { byHand = false; }, true);
for (const [kind, what] of [["click", "button"], ["change", "select, input[type=checkbox]"]]) {
  addEventListener(kind, ({ target }) => {
    if (byHand && !$("keys-help").open && target.closest?.(what)) $("picture").focus({ preventScroll: true });
  });
}
$("keys-help").addEventListener("close", () => { if (byHand) $("picture").focus({ preventScroll: true }); });

function offerSizes() {
  const { width, height } = stage.canvas, even = (value) => 2 * Math.round(value / 2);
  const sizes = [["as seen", even(width), even(height)], ["720p", 1280, 720], ["1080p", 1920, 1080], ["800×532", 800, 532]];
  const chosen = $("video-size").selectedIndex; // stays, whatever is seen
  $("video-size").replaceChildren(...sizes.map(([name, w, h]) => Object.assign(document.createElement("option"), { value: `${w}x${h}`, textContent: name })));
  if (chosen > 0) $("video-size").selectedIndex = chosen;
}
stage.addEventListener("resize", offerSizes);
offerSizes();
connection.connect();
$("picture").focus({ preventScroll: true });

// For tinkering in the console, and for tests.
window.hushsplat = { camera, controls, panel, stage, timeline, connection, sequence: () => sequence };
