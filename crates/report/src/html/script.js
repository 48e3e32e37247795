"use strict";
// Hovering shows every series at the nearest x; the legend hides and shows a series.
for (const figure of document.querySelectorAll(".chart")) {
  const svg = figure.querySelector(".scroll > svg");
  const crosshair = svg.querySelector(".crosshair");
  const [left, top, right, bottom] = svg.dataset.plot.split(" ").map(Number);
  const xLabel = svg.querySelector("text.label.x").textContent;
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  figure.append(tip);

  const marks = [...svg.querySelectorAll(".mark")].map((mark) => {
    const [x, y] = mark.dataset.at.split(" ").map(Number);
    return { mark, x, y, group: mark.parentNode };
  });

  const line = (text, value, colour) => {
    const row = document.createElement("div");
    if (colour) {
      const key = document.createElement("span");
      key.className = "key " + colour;
      row.append(key);
    } else {
      row.className = "head";
    }
    const number = document.createElement("b");
    number.textContent = value;
    row.append(number, text);
    return row;
  };

  const leave = () => {
    tip.hidden = true;
    crosshair.setAttribute("visibility", "hidden");
    marks.forEach(({ mark }) => mark.classList.remove("near"));
  };

  const move = (event) => {
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const shown = marks.filter(({ group }) => !group.classList.contains("off"));
    leave();
    if (at.x < left - 10 || at.x > right + 10 || at.y < top || at.y > bottom || !shown.length) return;
    const nearest = shown.reduce((a, b) => (Math.abs(b.x - at.x) < Math.abs(a.x - at.x) ? b : a));
    const column = shown.filter(({ x }) => Math.abs(x - nearest.x) < 0.6).sort((a, b) => a.y - b.y);
    column.forEach(({ mark }) => mark.classList.add("near"));
    crosshair.setAttribute("x1", nearest.x);
    crosshair.setAttribute("x2", nearest.x);
    crosshair.setAttribute("visibility", "visible");
    tip.replaceChildren(
      line(xLabel, nearest.mark.dataset.x),
      ...column.map(({ mark, group }) =>
        line(group.dataset.name, mark.dataset.y, [...group.classList].find((name) => /^c\d$/.test(name)))),
    );
    tip.hidden = false;
    const box = figure.getBoundingClientRect();
    const x = event.clientX - box.left;
    const y = event.clientY - box.top;
    const flip = x + 24 + tip.offsetWidth > box.width;
    tip.style.left = Math.max(0, flip ? x - 16 - tip.offsetWidth : x + 16) + "px";
    tip.style.top = Math.max(0, y - tip.offsetHeight / 2) + "px";
  };

  svg.addEventListener("pointermove", move);
  svg.addEventListener("pointerdown", move);
  svg.addEventListener("pointerleave", leave);

  for (const button of figure.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") === "false";
      button.setAttribute("aria-pressed", on);
      svg.querySelector(`.series[data-series="${button.dataset.series}"]`).classList.toggle("off", !on);
    });
  }
}
