// Charts over time: one cursor at the same moment in all charts of a result, and a zoom that all of them follow, by dragging
// or by the keyboard. Without this script each chart shows all of its time; so does paper.
"use strict";
(() => {
  const inSvg = (name, attributes) => {
    const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    return made;
  };
  // How far a pointer moves before it drags, pixels; and the shortest stretch of time shown, as a share of all.
  const dragged = 6;
  const shortest = 0.002;

  const charts = [...document.querySelectorAll("svg[data-time]")].map((svg) => {
    const [group, from, to, left, right] = svg.dataset.time.split(" ").map(Number);
    const [top, bottom] = svg.dataset.plot.split(" ").map(Number);
    const plot = { y: top, height: bottom - top };
    const corners = [[left, top], [right, top], [right, bottom], [left, bottom]].map(([x, y]) => `${x}px ${y}px`);
    const chosen = inSvg("rect", { ...plot, class: "chosen", visibility: "hidden" });
    const cursor = inSvg("line", { class: "cursor", y1: top, y2: bottom, visibility: "hidden" });
    const moment = inSvg("text", { class: "moment", y: bottom + 20, "text-anchor": "middle", visibility: "hidden" });
    const moving = [...svg.querySelectorAll(".run, .reach, .area, .outside rect, .edge")];
    const seconds = svg.querySelector(".seconds");
    svg.append(chosen, cursor, moment);
    const clip = `polygon(${corners.join()}) view-box`;
    const fixed = { svg, group, from, to, left, right, bottom, clip };
    return { ...fixed, chosen, cursor, moment, moving, seconds, ticks: [...seconds.children] };
  });
  const views = new Map(charts.map((chart) => [chart.group, { from: chart.from, to: chart.to, at: null }]));
  const together = (group) => charts.filter((chart) => chart.group === group);
  const xOf = (chart, time) => {
    const view = views.get(chart.group);
    return chart.left + ((time - view.from) / (view.to - view.from)) * (chart.right - chart.left);
  };
  const show = (element, is) => element.setAttribute("visibility", is ? "visible" : "hidden");

  // A round step that divides the stretch into four to eight parts, and the decimals that it needs.
  const ticks = (from, to) => {
    const power = 10 ** Math.floor(Math.log10((to - from) / 8));
    const step = [1, 2, 2.5, 5, 10].map((round) => round * power).find((one) => (to - from) / one <= 8);
    const places = Math.max(0, Math.ceil(-Math.log10(power)) + 1);
    const all = [];
    for (let at = Math.ceil(from / step); at * step <= to; at += 1) all.push(Number((at * step).toFixed(places)));
    return all;
  };
  const precise = (view, time) => time.toFixed(Math.max(0, Math.ceil(2 - Math.log10(view.to - view.from))));

  const point = (group, time) => {
    const view = views.get(group);
    const is = time !== null && time >= view.from && time <= view.to;
    view.at = is ? time : null;
    for (const chart of together(group)) {
      if (is) {
        const x = xOf(chart, time);
        chart.cursor.setAttribute("x1", x);
        chart.cursor.setAttribute("x2", x);
        chart.moment.setAttribute("x", x);
        chart.moment.textContent = `${precise(view, time)} s`;
      }
      show(chart.cursor, is);
      show(chart.moment, is);
      // Marks that the moment would lie over give way to it.
      for (const tick of chart.seconds.querySelectorAll(".tick")) {
        show(tick, !is || Math.abs(tick.getAttribute("x") - xOf(chart, time)) > 50);
      }
    }
  };

  const help = document.querySelector("p.zoom");
  const whole = help?.querySelector("button");
  const draw = (group) => {
    const view = views.get(group);
    for (const chart of together(group)) {
      const { svg, from, to, left, right, bottom, clip, moving, seconds } = chart;
      const isZoomed = view.from > from || view.to < to;
      const factor = (to - from) / (view.to - view.from);
      const shift = left * (1 - factor) - ((view.from - from) / (to - from)) * (right - left) * factor;
      svg.classList.toggle("zoomed", isZoomed);
      for (const one of moving) {
        if (isZoomed) one.setAttribute("transform", `matrix(${factor} 0 0 1 ${shift} 0)`);
        else one.removeAttribute("transform");
        one.parentElement.style.clipPath = isZoomed ? clip : "";
      }
      const marks = ticks(view.from, view.to).flatMap((time) => {
        const x = xOf(chart, time);
        const text = inSvg("text", { class: "tick", x, y: bottom + 20, "text-anchor": "middle" });
        text.textContent = time;
        return [inSvg("line", { class: "notch", x1: x, x2: x, y1: bottom, y2: bottom + 5 }), text];
      });
      seconds.replaceChildren(...(isZoomed ? marks : chart.ticks));
    }
    if (whole) whole.hidden = !charts.some((chart) => chart.svg.classList.contains("zoomed"));
    point(group, view.at);
  };
  const zoom = (chart, from, to) => {
    const view = views.get(chart.group);
    const all = chart.to - chart.from;
    const length = Math.min(all, Math.max(to - from, all * shortest));
    view.from = Math.min(Math.max(from, chart.from), chart.to - length);
    view.to = view.from + length;
    draw(chart.group);
  };
  const unzoom = () => {
    for (const chart of charts) zoom(chart, chart.from, chart.to);
  };

  for (const chart of charts) {
    const { svg, left, right } = chart;
    const view = views.get(chart.group);
    const timeAt = (event) => {
      const x = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse()).x;
      const time = view.from + ((x - left) / (right - left)) * (view.to - view.from);
      return { is: x >= left && x <= right, time: Math.min(Math.max(time, view.from), view.to) };
    };
    let began = null;
    const end = () => {
      began = null;
      for (const one of together(chart.group)) show(one.chosen, false);
    };
    svg.addEventListener("pointerdown", (event) => {
      const { is, time } = timeAt(event);
      if (is && event.button === 0) began = { time, x: event.clientX, isDrag: false };
    });
    svg.addEventListener("pointermove", (event) => {
      const { is, time } = timeAt(event);
      point(chart.group, is || began?.isDrag ? time : null);
      if (!began || (!began.isDrag && Math.abs(event.clientX - began.x) < dragged)) return;
      if (!began.isDrag) {
        began.isDrag = true;
        try {
          svg.setPointerCapture(event.pointerId);
        } catch {
          // The pointer is gone already.
        }
      }
      for (const one of together(chart.group)) {
        const [first, last] = [began.time, time].sort((a, b) => a - b).map((at) => xOf(one, at));
        one.chosen.setAttribute("x", first);
        one.chosen.setAttribute("width", last - first);
        show(one.chosen, true);
      }
    });
    svg.addEventListener("pointerup", (event) => {
      if (began?.isDrag) {
        const [first, last] = [began.time, timeAt(event).time].sort((a, b) => a - b);
        zoom(chart, first, last);
      }
      end();
    });
    svg.addEventListener("pointercancel", end);
    svg.addEventListener("pointerleave", () => point(chart.group, null));
    svg.addEventListener("dblclick", () => zoom(chart, chart.from, chart.to));
    svg.addEventListener("keydown", (event) => {
      const length = view.to - view.from;
      const middle = view.at ?? (view.from + view.to) / 2;
      const around = (next) => {
        const from = middle - (next * (middle - view.from)) / length;
        zoom(chart, from, from + next);
      };
      const move = (by) => zoom(chart, view.from + by, view.to + by);
      const keys = {
        "+": () => around(length / 2),
        "=": () => around(length / 2),
        "-": () => around(length * 2),
        "0": () => zoom(chart, chart.from, chart.to),
      };
      if (event.shiftKey) Object.assign(keys, { ArrowLeft: () => move(-length / 4), ArrowRight: () => move(length / 4) });
      if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      keys[event.key]();
    });
  }
  if (help && charts.length > 0) {
    help.hidden = false;
    whole.addEventListener("click", unzoom);
  }
  addEventListener("beforeprint", unzoom);
})();
