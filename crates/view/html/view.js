// What the pages do beyond forms: the list's button waits for two ticks, and a run that is watched renews itself.
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

  const live = document.getElementById("live");
  if (live) {
    const source = new EventSource(live.dataset.events);
    const renew = async () => {
      const answer = await fetch(location.href);
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      const renewed = page.getElementById("live");
      // The run has ended meanwhile.
      if (!renewed) return location.reload();
      live.replaceChildren(...renewed.childNodes);
      live.dataset.renewed = "yes";
    };
    source.addEventListener("message", (event) => {
      if (event.data !== "ended") return void renew().catch(() => {});
      source.close();
      location.reload();
    });
    // What changed between the page and the first event.
    source.addEventListener("open", () => renew().catch(() => {}), { once: true });
  }

  document.documentElement.dataset.ready = "yes";
})();
