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
