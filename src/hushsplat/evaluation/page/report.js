"use strict";
// The wipe: a range input over two pictures moves the edge between them; two lists choose the pictures.
for (const wipe of document.querySelectorAll(".wipe")) {
  const pictures = JSON.parse(wipe.dataset.pictures);
  const stack = wipe.querySelector(".stack");
  const slider = wipe.querySelector("input");
  const move = () => stack.style.setProperty("--at", slider.value + "%");
  slider.addEventListener("input", move);
  for (const [side, layer] of [["left", ".over"], ["right", ".under"]]) {
    const choice = wipe.querySelector("select." + side);
    choice.addEventListener("change", () => { wipe.querySelector(layer).src = pictures[choice.value].src; });
  }
  move();
}
// Videos: a button and a slider below them.
for (const player of document.querySelectorAll(".player")) {
  const video = player.querySelector("video"), button = player.querySelector("button"), slider = player.querySelector("input");
  const toggle = () => (video.paused ? video.play() : video.pause());
  button.addEventListener("click", toggle);
  video.addEventListener("click", toggle);
  for (const event of ["play", "pause"]) video.addEventListener(event, () => { button.textContent = video.paused ? "play" : "pause"; });
  video.addEventListener("timeupdate", () => { slider.value = video.duration ? video.currentTime / video.duration : 0; });
  slider.addEventListener("input", () => { video.currentTime = slider.value * (video.duration || 0); });
}
