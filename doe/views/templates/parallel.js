// Parallel coordinates: a line per run over factors and responses; ranges on the axes choose runs.
const TALL = 260;
const TOP = 14;
const ranges = new Map();  // axis -> the part of it that is chosen, from 0 (bottom) to 1
let everyResponse = false;
const jitter = (i) => ((i * 0.618034) % 1) - 0.5;
const factorAxis = (factor, k) => {
  const count = factor.levels.length;
  const step = 1 / count;
  return {
    name: factor.name,
    ticks: factor.levels.map((text, level) => [(level + 0.5) * step, text]),
    levels: factor.levels,
    place: (i) => {
      const level = data.cards[i].levels[k];  // null in the middle between two levels
      return level === null ? 0.5 : (level + 0.5 + 0.5 * jitter(i)) * step;
    },
  };
};
// The better end of a response is up.
const responseAxis = (name) => {
  const axis = data.axes[name];
  const scale = axis.log ? Math.log : (value) => value;
  const span = scale(axis.high) - scale(axis.low) || 1;
  const up = (part) => (axis.goal === "max" ? part : 1 - part);
  return {
    name: withUnit(name),
    ticks: [[up(0), axis.texts[0]], [up(1), axis.texts[1]]],
    place: (i) => {
      const value = data.grid.values[name][i];
      return value === null ? null : up((scale(value) - scale(axis.low)) / span);
    },
  };
};
const parallelAxes = () => {
  const shown = everyResponse ? data.responses : [...new Set([...data.headlines, state.response])];
  return [...data.factors.map(factorAxis), ...shown.filter((name) => name in data.axes).map(responseAxis)];
};
const inRange = (axis, i) => {
  const range = ranges.get(axis.name);
  const part = axis.place(i);
  return !range || (part !== null && part >= range[0] && part <= range[1]);
};
const showParallel = () => {
  const axes = parallelAxes();
  for (const name of ranges.keys()) if (!axes.some((axis) => axis.name === name)) ranges.delete(name);
  const wide = Math.max(axes.length * 84, Math.min(1240, at("parallel").parentElement.clientWidth - 2));
  const gap = wide / axes.length;
  const x = (k) => gap * (k + 0.5);
  const y = (part) => TOP + TALL * (1 - part);
  const svg = drawing("svg", { viewBox: `0 0 ${wide} ${TALL + 74}`, width: wide, height: TALL + 74, role: "group", "aria-label": "Runs across factors and responses" });
  const lines = drawing("g", { class: "lines" });
  const kept = [];
  data.grid.runs.forEach((run, i) => {
    const places = axes.map((axis) => axis.place(i));
    const chosen = axes.every((axis) => inRange(axis, i));
    if (chosen) kept.push(i);
    const points = places.map((part, k) => (part === null ? null : `${x(k).toFixed(1)},${y(part).toFixed(1)}`)).filter(Boolean);
    const line = drawing("polyline", { points: points.join(" "), class: chosen ? "kept" : "left", stroke: valueColour(i) || stateColour(i) });
    line.dataset.run = run.id;
    line.addEventListener("click", () => openRun(i));
    line.addEventListener("mousemove", (event) => tell(told(i), event.clientX, event.clientY));
    line.addEventListener("mouseleave", () => tell(""));
    if (chosen) lines.append(line); else lines.prepend(line);
  });
  svg.append(lines, ...axes.map((axis, k) => parallelAxis(axis, x(k), y, svg, gap)));
  at("parallel").replaceChildren(svg);
  at("parallel-legend").replaceChildren(rankLegend());
  showKept(kept);
};
const setRange = (name, range) => {
  if (range) ranges.set(name, range); else ranges.delete(name);
  const focused = document.activeElement && document.activeElement.dataset.axis;
  showParallel();
  const again = focused && [...at("parallel").querySelectorAll("[data-axis]")].find((node) => node.dataset.axis === focused);
  if (again) again.focus();
};
const shortened = (text, room) => (text.length > room ? `${text.slice(0, room - 1)}…` : text);
const parallelAxis = (axis, x, y, svg, gap) => {
  const range = ranges.get(axis.name);
  const label = `${axis.name}: ${range ? "a range is chosen" : "all"}; arrow keys choose a range, Escape takes all`;
  const group = drawing("g", { tabindex: 0, role: "button", "aria-label": label, class: "axis", transform: `translate(${x} 0)` });
  group.dataset.axis = axis.name;
  group.append(drawing("title", {}, axis.name), drawing("rect", { x: -14, width: 28, y: TOP - 6, height: TALL + 12, class: "grab" }), drawing("line", { y1: y(1), y2: y(0) }));
  if (range) group.append(drawing("rect", { x: -6, width: 12, y: y(range[1]), height: Math.max(4, y(range[0]) - y(range[1])), class: "range" }));
  const room = Math.floor(gap / 6.4);
  for (const [part, text] of axis.ticks) {
    const inside = axis.levels ? 4 : part > 0.5 ? -4 : 12;
    group.append(drawing("text", { x: axis.levels ? 6 : 0, y: y(part) + inside, "text-anchor": axis.levels ? "start" : "middle", class: "tick" }, shortened(text, room)));
  }
  const words = axis.name.split(/[\s_]+/);
  const halves = axis.name.length > room && words.length > 1 ? [words.slice(0, Math.ceil(words.length / 2)).join(" "), words.slice(Math.ceil(words.length / 2)).join(" ")] : [axis.name];
  halves.forEach((text, k) => group.append(drawing("text", { y: TOP + TALL + 34 + 14 * k, "text-anchor": "middle", class: "name" }, shortened(text, room))));
  const step = axis.levels ? 1 / axis.levels.length : 0.25;
  const level = (part) => Math.min(1 - step, Math.floor(part / step + 1e-9) * step);
  const partAt = (event) => Math.min(1, Math.max(0, 1 - (event.clientY - svg.getBoundingClientRect().top - TOP) / TALL));
  group.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    group.focus({ preventScroll: true });
    const from = partAt(event);
    const end = (up) => {
      window.removeEventListener("pointerup", end);
      const to = partAt(up);
      const [low, high] = [Math.min(from, to), Math.max(from, to)];
      const moved = high - low > 0.02;
      if (axis.levels && (moved || !range)) setRange(axis.name, [level(low), level(high) + step]);
      else setRange(axis.name, moved ? [low, high] : null);
    };
    window.addEventListener("pointerup", end);
  });
  group.addEventListener("keydown", (event) => {
    if (event.key === "Escape") setRange(axis.name, null);
    else if (event.key === "ArrowUp") setRange(axis.name, range ? [Math.min(1 - step, range[0] + step), Math.min(1, range[1] + step)] : [0, step]);
    else if (event.key === "ArrowDown") setRange(axis.name, range ? [Math.max(0, range[0] - step), Math.max(step, range[1] - step)] : [1 - step, 1]);
    else return;
    event.preventDefault();
  });
  return group;
};
const showKept = (kept) => {
  const place = at("kept");
  const { runs } = data.grid;
  if (ranges.size === 0) {
    place.replaceChildren(make("span", "quiet", "Drag along an axis to choose runs; a line opens its run."));
    return;
  }
  const clear = make("button", "", "All runs");
  clear.type = "button";
  clear.addEventListener("click", () => { ranges.clear(); showParallel(); });
  place.replaceChildren(make("b", "", `${kept.length} of ${runs.length} runs`), clear, ...kept.slice(0, 12).map((i) => {
    const button = make("button", "plain", runs[i].id);
    button.type = "button";
    button.addEventListener("click", () => openRun(i));
    return button;
  }), kept.length > 12 ? "…" : "");
};
at("every-response").addEventListener("change", (event) => { everyResponse = event.target.checked; showParallel(); });
window.addEventListener("resize", showParallel);
