// Two responses against each other: a dot for each configuration, faint ones for its runs. A click takes a configuration
// into the profiler; a rectangle chooses several, whose levels the profiler then counts.
const SIDE = 340;
const EDGE = { left: 52, right: 12, top: 12, bottom: 40 };
let brush = null;  // [[x, y], [x, y]] of the two responses
const pairNow = () => {
  const able = data.responses.filter(profileOf);
  const known = (state.pair || []).filter((name) => able.includes(name));
  return known.length === 2 ? known : [...new Set([...data.headlines, ...able])].filter((name) => able.includes(name)).slice(0, 2);
};
const levelsAt = (row) => {
  let rest = row;
  return data.factors.map((factor) => {
    const level = rest % factor.levels.length;
    rest = Math.floor(rest / factor.levels.length);
    return level;
  });
};
const observedPoints = ([first, second]) => profileOf(first).rows.flatMap((row, k) => {
  const other = profileOf(second).rows[k];
  return row.length && other && other.length && row[3] !== null && other[3] !== null ? [{ k, x: row[3], y: other[3], texts: [row[6], other[6]] }] : [];
});
const isBrushed = ({ x, y }) => brush && x >= Math.min(brush[0][0], brush[1][0]) && x <= Math.max(brush[0][0], brush[1][0]) && y >= Math.min(brush[0][1], brush[1][1]) && y <= Math.max(brush[0][1], brush[1][1]);
// Share of the chosen configurations at each level of a factor.
const brushedShares = (i) => {
  const pair = pairNow();
  if (!brush || pair.length < 2) return null;
  const chosen = observedPoints(pair).filter(isBrushed).map(({ k }) => levelsAt(k)[i]);
  return chosen.length ? data.factors[i].levels.map((_, level) => chosen.filter((other) => other === level).length / chosen.length) : null;
};
const spread = (name, values, length) => {
  const log = isLog(name, values);
  const [scale, back] = log ? [Math.log, Math.exp] : [(value) => value, (value) => value];
  const [low, high] = [scale(Math.min(...values)), scale(Math.max(...values))];
  const room = 0.05 * (high - low) || Math.abs(high) || 1;
  const [from, span] = [low - room, high - low + 2 * room];
  return { to: (value) => (length * (scale(value) - from)) / span, from: (pixel) => back(from + (pixel * span) / length), ticks: log ? logTicks(from, from + span) : ticks(from, from + span, 4) };
};
// Where a configuration stands among the two responses, with the intervals of its means, if the two were weighed.
const placeAt = (k, pair) => {
  const { responses, at: places } = data.front;
  if (responses.length !== 2 || !pair.every((name) => responses.includes(name)) || !(k in places)) return { place: "", ends: [] };
  const [place, ends] = places[k];
  return { place, ends: pair.map((name) => ends[responses.indexOf(name)]) };
};
const configAt = (row) => (data.grid.runs.find((_, i) => data.cards[i].levels.every((level) => level !== null) && position(data.cards[i].levels) === row) || { config: "" }).config;
const showTradeoff = () => {
  const pair = pairNow();
  at("tradeoff").hidden = pair.length < 2;
  at("profiling").classList.toggle("alone", pair.length < 2);
  if (pair.length < 2) return;
  const points = observedPoints(pair).map((point) => ({ ...point, ...placeAt(point.k, pair) }));
  ["tradeoff-x", "tradeoff-y"].forEach((id, k) => {
    at(id).replaceChildren(...data.responses.filter(profileOf).map((name) => new Option(withUnit(name), name, false, name === pair[k])));
  });
  at("tradeoff-places").hidden = !points.some(({ place }) => place);
  const runs = data.grid.runs.map((_, i) => pair.map((name) => data.grid.values[name][i])).filter((values) => !values.includes(null));
  const across = spread(pair[0], [...points.map(({ x }) => x), ...runs.map(([x]) => x)], SIDE - EDGE.left - EDGE.right);
  const down = spread(pair[1], [...points.map(({ y }) => y), ...runs.map(([, y]) => y)], SIDE - EDGE.top - EDGE.bottom);
  const px = (value) => EDGE.left + across.to(value);
  const py = (value) => SIDE - EDGE.bottom - down.to(value);
  const svg = picture(SIDE, SIDE, { class: "tradeoff", tabindex: 0, role: "img", "aria-label": `${titleOf(pair[1])} against ${titleOf(pair[0])}; arrow keys take one configuration after another into the profiler` });
  svg.removeAttribute("aria-hidden");
  for (const value of across.ticks) svg.append(drawing("line", { x1: px(value), x2: px(value), y1: EDGE.top, y2: SIDE - EDGE.bottom, class: "guide" }), drawing("text", { x: px(value), y: SIDE - EDGE.bottom + 15, "text-anchor": "middle" }, tickText(value)));
  for (const value of down.ticks) svg.append(drawing("line", { x1: EDGE.left, x2: SIDE - EDGE.right, y1: py(value), y2: py(value), class: "guide" }), drawing("text", { x: EDGE.left - 5, y: py(value) + 4, "text-anchor": "end" }, tickText(value)));
  svg.append(drawing("text", { x: SIDE - EDGE.right, y: SIDE - 8, "text-anchor": "end" }, `${withUnit(pair[0])} →`), drawing("text", { x: 12, y: EDGE.top, transform: `rotate(-90 12 ${EDGE.top})`, "text-anchor": "end" }, `${withUnit(pair[1])} →`));
  svg.append(...runs.map(([x, y]) => drawing("circle", { cx: px(x), cy: py(y), r: 1.5, class: "seed" })));
  const front = frontOf(points, pair);
  if (front.length > 1) svg.append(drawing("polyline", { points: front.map((point) => `${px(point.x)},${py(point.y)}`).join(" "), class: "best" }));
  svg.append(...points.map((point) => {
    const cls = ["config", point.place, front.includes(point) ? "best" : "", !brush || isBrushed(point) ? "" : "left"];
    const dot = drawing("circle", { cx: px(point.x), cy: py(point.y), r: point.place === "front" ? 6 : 4, class: cls.filter(Boolean).join(" ") });
    dot.dataset.row = point.k;
    return dot;
  }));
  const now = position(levelsNow());
  const chosen = points.find(({ k }) => k === now);
  const foreseen = pair.map((name) => profiled(name, levelsNow())).map((row) => row && row.mean);
  if (chosen && chosen.ends.length && !chosen.ends.flat().includes(null)) {
    const inside = (value, low, high) => Math.min(high, Math.max(low, Number.isFinite(value) ? value : low));
    const [xs, ys] = [chosen.ends[0].map((end) => inside(px(end), EDGE.left, SIDE - EDGE.right)), chosen.ends[1].map((end) => inside(py(end), EDGE.top, SIDE - EDGE.bottom))];
    svg.append(drawing("line", { x1: xs[0], x2: xs[1], y1: py(chosen.y), y2: py(chosen.y), class: "reach" }), drawing("line", { x1: px(chosen.x), x2: px(chosen.x), y1: ys[0], y2: ys[1], class: "reach" }));
  }
  if (chosen) svg.append(drawing("circle", { cx: px(chosen.x), cy: py(chosen.y), r: 8, class: "ring" }));
  else if (!foreseen.includes(null)) svg.append(drawing("circle", { cx: px(foreseen[0]), cy: py(foreseen[1]), r: 8, class: "ring foreseen" }));
  if (brush) svg.append(drawing("rect", { x: px(Math.min(brush[0][0], brush[1][0])), y: py(Math.max(brush[0][1], brush[1][1])), width: Math.abs(px(brush[0][0]) - px(brush[1][0])), height: Math.abs(py(brush[0][1]) - py(brush[1][1])), class: "brush" }));
  steer(svg, points, px, py, (x, y) => [across.from(x - EDGE.left), down.from(SIDE - EDGE.bottom - y)]);
  at("tradeoff-picture").replaceChildren(svg);
  const count = brush ? points.filter(isBrushed).length : 0;
  at("brushed").textContent = brush ? `${count} of ${points.length} configurations chosen: the bars below the levels of the profiler are their shares. Click beside a dot to clear.` : "";
};
// Configurations that no other beats in both responses, by their observed means.
const frontOf = (points, pair) => {
  const signs = pair.map((name) => ({ max: 1, min: -1 })[goalOf(name)]);
  if (signs.includes(undefined)) return [];
  const gains = points.map((point) => [signs[0] * point.x, signs[1] * point.y]);
  const beaten = ([a, b]) => gains.some(([c, d]) => c >= a && d >= b && (c > a || d > b));
  return points.filter((_, i) => !beaten(gains[i])).sort((p, q) => p.x - q.x);
};
const steer = (svg, points, px, py, values) => {
  const at_ = (event) => {
    const box = svg.getBoundingClientRect();
    return [((event.clientX - box.left) * SIDE) / box.width, ((event.clientY - box.top) * SIDE) / box.height];
  };
  const away = ([x, y], point) => Math.hypot(px(point.x) - x, py(point.y) - y);
  const close = (spot) => points.filter((point) => away(spot, point) < 12).sort((a, b) => away(spot, a) - away(spot, b))[0];
  svg.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const from = at_(event);
    window.addEventListener("pointerup", (up) => {
      const to = at_(up);
      const moved = Math.hypot(to[0] - from[0], to[1] - from[1]) > 5;
      const point = close(to);
      if (moved || !point) {
        brush = moved ? [values(...from), values(...to)] : null;
        showProfiler();
      } else setLevels(levelsAt(point.k));
    }, { once: true });
  });
  svg.addEventListener("pointermove", (event) => {
    const point = close(at_(event));
    tell(point ? `${configAt(point.k)}\n${point.texts.map((text, k) => `${titleOf(pairNow()[k])} ${text}`).join("\n")}` : "", event.clientX, event.clientY);
  });
  svg.addEventListener("pointerleave", () => tell(""));
  svg.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const order = [...points].sort((a, b) => a.x - b.x);
    const now = order.findIndex(({ k }) => k === position(levelsNow()));
    const next = order[Math.min(order.length - 1, Math.max(0, now + step))];
    if (next) setLevels(levelsAt(next.k));
    at("tradeoff-picture").firstChild.focus();
  });
};
["tradeoff-x", "tradeoff-y"].forEach((id) => at(id).addEventListener("change", () => {
  brush = null;
  state.pair = [at("tradeoff-x").value, at("tradeoff-y").value];
  showProfiler();
}));
at("tradeoff-tools").append(...savers("Trade-off", (kind) => savePicture(at("tradeoff-picture").firstChild, `trade-off-${pairNow().join("-")}`, kind)));
