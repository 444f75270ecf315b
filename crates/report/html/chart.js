// What the page does beyond showing: figures at the pointer or the focused point, arrow keys between points, a command
// to copy, the record as a download. Without this script the page lacks these and nothing else.
"use strict";
(() => {
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  // Each point has a label of its own for screen readers.
  tip.setAttribute("aria-hidden", "true");
  document.body.append(tip);

  const show = (point) => {
    tip.textContent = point.dataset.label;
    tip.hidden = false;
    const at = (point.querySelector(".mark, .line, .bar, .run, .area, .box") || point).getBoundingClientRect();
    const left = at.left + at.width / 2 - tip.offsetWidth / 2;
    const widest = document.documentElement.clientWidth - tip.offsetWidth - 8;
    const above = at.top - tip.offsetHeight - 10;
    tip.style.left = `${scrollX + Math.max(8, Math.min(left, widest))}px`;
    tip.style.top = `${scrollY + (above < 4 ? at.bottom + 10 : above)}px`;
  };
  const hide = () => {
    tip.hidden = true;
  };

  for (const svg of document.querySelectorAll("svg")) {
    // A line is easier to point at than it is to see.
    for (const run of svg.querySelectorAll(".run")) {
      const reach = run.cloneNode();
      reach.setAttribute("class", "reach");
      run.before(reach);
    }
    const points = [...svg.querySelectorAll(".point")];
    points.forEach((point, index) => {
      // The browser's own tooltip would lie over ours.
      point.querySelector("title")?.remove();
      // One stop of the tab key a chart; the arrow keys go on from there.
      point.tabIndex = index === 0 ? 0 : -1;
      point.addEventListener("pointerenter", () => show(point));
      point.addEventListener("pointerleave", hide);
      point.addEventListener("focus", () => show(point));
      point.addEventListener("blur", hide);
      point.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (event.key === "Escape") hide();
        if (!step || event.shiftKey) return;
        event.preventDefault();
        const next = points[(index + step + points.length) % points.length];
        point.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      });
    });
  }

  for (const line of document.querySelectorAll("[data-copy]")) {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = line.dataset.copy;
    const code = line.querySelector("code");
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(code.textContent);
        button.textContent = line.dataset.copied;
      } catch {
        // Without leave to write the clipboard it is selected, for the reader to copy.
        getSelection().selectAllChildren(code);
      }
    });
    line.append(button);
  }

  const record = document.getElementById("record");
  const text = record.textContent;
  const type = record.dataset.type || "application/json";
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([text], { type }));
  const name = `linerate-${record.dataset.name || JSON.parse(text).id}.${type.split("/")[1]}`;
  link.download = name.replace(/[^A-Za-z0-9._-]/g, "_");
  link.textContent = record.dataset.label;
  document.getElementById("download").append(link);

  document.documentElement.dataset.ready = "yes";
})();
