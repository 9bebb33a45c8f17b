// Files in and out: scenes and tracks to the server's readers, screenshots with their cameras, downloads.
import { address } from "./connection.js";

const PNG = [137, 80, 78, 71, 13, 10, 26, 10];
const KEYWORD = "hushsplat-track";

/** Send a file to the server; resolves with its answer, or rejects with its words. */
export function upload(path, file, session, onProgress = () => {}) {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest(); // fetch has no upload progress
    request.open("POST", address(path, { session, name: file.name }));
    request.upload.onprogress = ({ loaded, total }) => onProgress(total ? loaded / total : 0);
    request.onload = () => {
      let answer = {};
      try {
        answer = JSON.parse(request.responseText);
      } catch {
        answer = { error: `the viewer answered ${request.status}.` };
      }
      if (request.status === 200 && !answer.error) resolve(answer);
      else reject(new Error(answer.error ?? `the viewer answered ${request.status}.`));
    };
    request.onerror = () => reject(new Error(`${file.name}: could not be sent; the viewer may have refused its size.`));
    request.send(file);
  });
}

export function download(content, name, type) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content instanceof Blob ? content : new Blob([content], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** The track in the text chunk of one of our screenshots, or null. */
export async function trackInPng(file) {
  const bytes = new Uint8Array(await file.arrayBuffer());
  if (!PNG.every((value, index) => bytes[index] === value)) return null;
  const view = new DataView(bytes.buffer);
  for (let at = 8; at + 12 <= bytes.length;) {
    const size = view.getUint32(at), kind = String.fromCharCode(...bytes.subarray(at + 4, at + 8));
    const data = bytes.subarray(at + 8, at + 8 + size);
    if (kind === "iTXt") {
      const keyword = new TextDecoder().decode(data.subarray(0, data.indexOf(0)));
      const start = textStart(data, keyword.length + 1);
      if (keyword === KEYWORD && data[keyword.length + 1] === 0) return new TextDecoder().decode(data.subarray(start));
    }
    at += 12 + size;
  }
  return null;
}

/** After the keyword come two flags, a language and a translated keyword, both ended by a zero. */
function textStart(data, flags) {
  const language = data.indexOf(0, flags + 2);
  return data.indexOf(0, language + 1) + 1;
}
