// What the pages do beyond forms: the list's button waits for two ticks, keys move in the list, and runs under way are drawn anew as
// they go on.
"use strict";
(() => {
  const records = document.querySelector("form.records");
  if (records) {
    const button = records.querySelector("button");
    const said = document.getElementById("ticked");
    const count = () => {
      const ticked = records.querySelectorAll("input:checked").length;
      button.disabled = ticked !== 2;
      said.textContent = [said.dataset.two, said.dataset.one, ""][ticked] ?? `${ticked} ${said.dataset.many}`;
    };
    records.addEventListener("change", count);
    // Going back in a browser brings its ticks back too.
    addEventListener("pageshow", count);
    count();
  }

  const search = document.querySelector(".filter input[name=text]");
  if (search) {
    const links = [...document.querySelectorAll(".records tbody a.open")];
    const step = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    addEventListener("keydown", (event) => {
      const typing = event.target.matches?.("input:not([type=checkbox]), select");
      if (typing || event.ctrlKey || event.altKey || event.metaKey) return;
      if (event.key === "/") {
        search.closest("details").open = true;
        search.focus();
        search.select();
      } else if (Object.hasOwn(step, event.key) && links.length > 0) {
        const at = links.findIndex((link) => link.closest("tr").contains(document.activeElement));
        // Outside the rows the arrows scroll the page.
        if (at < 0 && event.key.startsWith("Arrow")) return;
        links[Math.min(Math.max(at + step[event.key], 0), links.length - 1)].focus();
      } else {
        return;
      }
      event.preventDefault();
    });
    document.getElementById("keys")?.removeAttribute("hidden");
  }

  const live = document.getElementById("live");
  if (live) {
    const source = new EventSource(live.dataset.events);
    const all = (part, what) => [...part.querySelectorAll(what)];
    const reach = "summary, a";
    const renew = (part, content) => {
      const open = all(part, "details").map((one) => one.open);
      const at = all(part, reach).indexOf(document.activeElement);
      part.innerHTML = content;
      // What the reader opened stays open, and the focus where it was.
      all(part, "details").forEach((one, index) => { one.open = open[index] ?? false; });
      if (at >= 0) all(part, reach)[at]?.focus({ preventScroll: true });
      live.dataset.renewed = Number(live.dataset.renewed ?? 0) + 1;
    };
    for (const part of live.children) source.addEventListener(part.id, (event) => renew(part, event.data));
    source.addEventListener("ended", (event) => {
      source.close();
      // Ticks in the list are not thrown away.
      if (event.data === "kept" && !document.querySelector("input:checked")) location.reload();
    });
  }

  document.documentElement.dataset.ready = "yes";
})();
