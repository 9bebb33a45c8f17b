// What a file is, before it is sent: by its name and its first bytes. And folders that are dropped.

const SCENES = /\.(ply|splat|spz|sog)$/i;
const NAMES = [
  [/\.(jpe?g|webp|gif|heic|tiff?|bmp)$/i, "a picture"], [/\.(mp4|mov|webm|avi)$/i, "a video"], [/\.(zip|7z|rar|gz|tar)$/i, "an archive; unpack it first"],
  [/\.(glb|gltf|obj|fbx|stl|blend|usd[acz]?)$/i, "a mesh, not Gaussians"], [/\.(las|laz|e57|pcd)$/i, "a point cloud, not Gaussians"],
  [/\.(ckpt|pth?|safetensors)$/i, "a checkpoint; export a .ply from it"], [/\.(ksplat)$/i, "a scene of another viewer's own format; export a .ply"], [/\.html?$/i, "a web page"],
];
const PARTS = [
  [/^lod-meta\.json$/i, "describes a streamed scene in many files; start the viewer with its folder: hushsplat view FOLDER"],
  [/^meta\.json$/i, "is one file of a SOG scene; drop the whole folder"],
  [/^(cameras|images|points3D|frames|rigs)\.(bin|txt)$/i, "is one file of a capture; start the viewer with --capture FOLDER"],
];
const MAGIC = [["\xff\xd8\xff", "a picture"], ["\x89PNG", "a picture"], ["GIF8", "a picture"], ["glTF", "a mesh, not Gaussians"], ["<!DO", "a web page; the download went wrong"], ["<htm", "a web page; the download went wrong"], ["vers", "a pointer of Git LFS; fetch the file itself"]];
const EXPECTED = "drop a .ply, .splat, .spz or .sog file, a track or a screenshot";
const HEADER_BYTES = 8192, SPLAT_BYTES = 32;
const MOST_FILES = 4000;
const CAPTURE = ["transforms.json", "transforms_train.json", "poses_bounds.npy", ...["", "sparse/", "sparse/0/", "colmap/sparse/0/"].flatMap((folder) => [`${folder}cameras.bin`, `${folder}cameras.txt`])];

/** What to do with the folder that a file is a part of; null for files that are whole. */
export function partRefusal({ name }) {
  const part = PARTS.find(([whole]) => whole.test(name));
  return part ? `${name}: ${part[1]}.` : null;
}

/** Why a file is no scene, in one line; null if it may be one. */
export async function refusal(file) {
  const { name, size } = file;
  if (!SCENES.test(name)) return `${name}: is ${NAMES.find(([suffix]) => suffix.test(name))?.[1] ?? "no scene"}; ${EXPECTED}.`;
  if (!size) return `${name}: is empty; ${EXPECTED}.`;
  const start = String.fromCharCode(...new Uint8Array(await file.slice(0, HEADER_BYTES).arrayBuffer()));
  const other = MAGIC.find(([magic]) => start.startsWith(magic));
  if (other) return `${name}: is ${other[1]}; ${EXPECTED}.`;
  if (start.startsWith("ply")) return plyRefusal(name, start.split("end_header")[0]);
  if (/^(PK|NGSP|\x1f\x8b)/.test(start)) return null; // .sog or .spz, whatever its name: the server reads what is in it
  if (/\.ply$/i.test(name)) return `${name}: is no PLY, which begins with "ply"; ${EXPECTED}.`;
  if (/\.splat$/i.test(name) && size % SPLAT_BYTES) return `${name}: has ${size} bytes, and a .splat has ${SPLAT_BYTES} for each Gaussian; it is cut short or of another format.`;
  if (/\.sog$/i.test(name)) return `${name}: is no .sog, which is a zip file of pictures; ${EXPECTED}.`;
  if (/\.spz$/i.test(name)) return `${name}: is no .spz, which begins with gzip data or "NGSP"; ${EXPECTED}.`;
  return null;
}

function plyRefusal(name, header) {
  if (/property \w+ (scale_0|packed_scale)\b/.test(header)) return null;
  const faces = header.match(/element face (\d+)/);
  const kind = faces && Number(faces[1]) ? "a mesh" : "a point cloud";
  return `${name}: is ${kind}, not Gaussians: it has no scales; drop what a trainer of Gaussians has written.`;
}

/** All files in a dropped folder, with their paths in it. */
export async function filesIn(folder) {
  const found = [], open = [folder];
  while (open.length && found.length < MOST_FILES) {
    const reader = open.pop().createReader();
    for (let some = [null]; some.length;) { // gives them in parts, an empty one at last
      some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
      for (const entry of some) {
        if (entry.isDirectory) open.push(entry);
        else found.push({ path: entry.fullPath.slice(folder.fullPath.length + 1), file: () => new Promise((resolve, reject) => entry.file(resolve, reject)) });
      }
    }
  }
  return found;
}

/** The one scene of a dropped folder as a file. */
export async function sceneOf(folder) { return sceneAmong(folder.name, await filesIn(folder), folder.name); }

/** Several dropped files as one: the scene among them, or the files of a SOG folder. */
export function sceneOfFiles(files) {
  return sceneAmong("dropped files", files.map((file) => ({ path: file.name, file: async () => file })));
}

/** A scene of these files, 3DGS's last iteration, or a SOG folder made one file. */
async function sceneAmong(name, files, folder = null) {
  const named = (wanted) => files.find(({ path }) => path === wanted);
  if (named("lod-meta.json")) throw new Error(`${name}: is a streamed scene in many files; start the viewer with its folder: hushsplat view ${folder ?? "FOLDER"}`);
  if (named("meta.json")) return bundled(name, files.filter(({ path }) => !path.includes("/")));
  const pieces = files.filter(({ path }) => path.endsWith("/meta.json")).map(({ path }) => {
    const inside = path.slice(0, -"meta.json".length);
    return { path: inside.slice(0, -1), file: () => sceneAmong(inside.slice(0, -1), below(inside, files)) };
  });
  const scenes = [...files.filter(({ path }) => SCENES.test(path)), ...pieces].sort((a, b) => (a.path < b.path ? -1 : 1));
  const trained = scenes.map((one) => [Number(one.path.match(/^point_cloud\/iteration_(\d+)\/point_cloud\.ply$/)?.[1] ?? -1), one]).sort((a, b) => b[0] - a[0]);
  if (trained.length && trained[0][0] >= 0) return trained[0][1].file();
  if (scenes.length === 1) return scenes[0].file();
  if (!scenes.length && CAPTURE.some((path) => named(path))) throw new Error(`${name}: is a capture (photographs with cameras); hushsplat train ${name} -o RUN makes a scene of it, --capture ${name} shows its cameras.`);
  const few = scenes.slice(0, 4).map(({ path }) => path).join(", ");
  throw new Error(scenes.length ? `${name}: has ${scenes.length} scenes; drop one of them: ${few}${scenes.length > 4 ? ", …" : ""}.` : `${name}: ${folder ? "this folder has no scene" : "no scene is among them"}; ${EXPECTED}.`);
}

const below = (start, files) => files.filter(({ path }) => path.startsWith(start)).map((one) => ({ ...one, path: one.path.slice(start.length) }));

/** The files of a SOG folder as one .sog: a zip file without compression. */
async function bundled(name, files) {
  const parts = [], directory = [];
  let at = 0;
  for (const { path, file } of files) {
    const bytes = new Uint8Array(await (await file()).arrayBuffer()), title = new TextEncoder().encode(path);
    const entry = new DataView(new ArrayBuffer(26));
    [[0, 20], [4, 0], [6, 0], [8, 0x21]].forEach(([offset, value]) => entry.setUint16(offset, value, true)); // version, stored, 1980
    [[10, crc32(bytes)], [14, bytes.length], [18, bytes.length]].forEach(([offset, value]) => entry.setUint32(offset, value, true));
    entry.setUint16(22, title.length, true);
    const local = [Uint8Array.of(0x50, 0x4b, 3, 4), new Uint8Array(entry.buffer), title];
    directory.push(Uint8Array.of(0x50, 0x4b, 1, 2, 20, 0), new Uint8Array(entry.buffer), new Uint8Array(10), u32(at), title);
    parts.push(...local, bytes);
    at += 30 + title.length + bytes.length;
  }
  const size = directory.reduce((sum, { length }) => sum + length, 0), count = u16(files.length);
  const end = [Uint8Array.of(0x50, 0x4b, 5, 6, 0, 0, 0, 0), count, count, u32(size), u32(at), u16(0)];
  return new File([...parts, ...directory, ...end], `${name}.sog`);
}

const u16 = (value) => Uint8Array.of(value & 255, value >> 8);
const u32 = (value) => Uint8Array.of(value & 255, (value >> 8) & 255, (value >> 16) & 255, value >>> 24);
const TABLE = Array.from({ length: 256 }, (_, n) => {
  for (let k = 0; k < 8; k += 1) n = n & 1 ? 0xedb88320 ^ (n >>> 1) : n >>> 1;
  return n >>> 0;
});
function crc32(bytes) {
  let crc = 0xffffffff;
  for (const byte of bytes) crc = TABLE[(crc ^ byte) & 255] ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
}
