// The profiler: factors across, responses down; each panel a trace of the predictions over the levels of one factor.
const HEAD = 190;  // what is predicted, left of the panels
const GUTTER = 46;  // the values of the grid lines
const CELLS = [96, 340];  // width of a panel, at least and at most
const TALL_CELLS = [210, 120];  // of up to two responses, and of more
let tallCell = TALL_CELLS[1];
const LINE = 15;
const leastCell = () => Math.max(CELLS[0], 8 + Math.max(...data.factors.flatMap(({ name }) => name.split(" ").map(textWidth))));
const position = (levels) => {
  let stride = 1;
  return data.factors.reduce((sum, factor, i) => {
    const next = sum + stride * levels[i];
    stride *= factor.levels.length;
    return next;
  }, 0);
};
const isExcluded = (levels) => data.excluded.includes(position(levels));
const profileOf = (name) => data.byResponse[name].profile;
const profiled = (name, levels) => {
  const profile = profileOf(name);
  const row = !isExcluded(levels) && profile && profile.rows[position(levels)];
  if (!row || row.length === 0) return null;
  const [mean, low, high, observed, text, interval, observedText, runs] = row;
  return { mean, low, high, observed, text, interval, observedText, runs };
};
const levelsNow = () => state.levels || (profileOf(state.response) || { places: [] }).places.map(([, levels]) => levels)[0] || data.factors.map(() => 0);
const withLevel = (i, level) => levelsNow().map((old, j) => (j === i ? level : old));
const setLevels = (levels) => {
  state.levels = levels;
  remember();
  showProfiler();
};

// The axis of a response is the same in all its panels: what was observed and predicted where runs are, and of the
// intervals and of other predictions what leaves these readable.
const isLog = (name, values) => data.axes[name].log && Math.min(...values) > 0;
const axes = new WeakMap();
const axisOf = (name) => {
  const profile = profileOf(name);
  if (axes.has(profile)) return axes.get(profile);
  const values = (rows, picked) => rows.flatMap((row) => picked.map((k) => row[k])).filter((value) => typeof value === "number");
  const known = profile.rows.filter((row) => row[7]);
  const log = isLog(name, values(profile.rows, [0, 3]));
  const scale = log ? Math.log : (value) => value;
  const means = values(known.length ? known : profile.rows, [0, 3]).map(scale);
  const ends = values(profile.rows, [0, 1, 2]).map(scale).filter(Number.isFinite);
  const [least, most] = [Math.min(...means), Math.max(...means)];
  const room = 0.6 * (most - least) || Math.abs(most) || 1;
  const low = Math.max(Math.min(least, ...ends), least - room);
  const high = Math.min(Math.max(most, ...ends), most + room);
  const span = high - low || 1;
  const y = (value) => 4 + (tallCell - 8) * (1 - Math.min(1, Math.max(0, (log && value <= 0 ? 0 : (scale(value) - low) / span))));
  const axis = { y, ticks: log ? logTicks(low, high) : ticks(low, low + span) };
  axes.set(profile, axis);
  return axis;
};
const ticks = (low, high, about = 3) => {
  const rough = (high - low) / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = power * [1, 2, 5, 10].find((part) => part * power >= rough);
  return Array.from({ length: about + 2 }, (_, k) => (Math.ceil(low / step) + k) * step).filter((value) => value <= high);
};
const logTicks = (low, high) => {
  const decades = [1, 2, 5].flatMap((part) => Array.from({ length: 40 }, (_, k) => part * 10 ** (k - 20)));
  const inside = decades.filter((value) => Math.log(value) >= low && Math.log(value) <= high).sort((a, b) => a - b);
  const each = Math.ceil(inside.length / 4);
  return inside.filter((_, k) => k % each === 0);
};
const tickText = (value) => String(Number(value.toPrecision(3))).replace("-", "−");

// Where the levels of a factor lie: numbers on their own scale, names evenly.
const placesOf = (factor, wide) => factor.places.map((part) => 12 + part * (wide - 24));
const nearest = (places, x) => places.reduce((best, place, k) => (Math.abs(place - x) < Math.abs(places[best] - x) ? k : best), 0);
const grab = (node, i, wide) => {
  node.addEventListener("pointerdown", (event) => {
    event.preventDefault();
    const box = node.getBoundingClientRect();
    const places = placesOf(data.factors[i], wide);
    const follow = (at) => {
      const level = nearest(places, ((at.clientX - box.left) * wide) / box.width);
      if (level !== levelsNow()[i]) setLevels(withLevel(i, level));
    };
    const end = () => {
      window.removeEventListener("pointermove", follow);
      window.removeEventListener("pointerup", end);
      focusFactor(data.factors[i].key);
    };
    follow(event);
    window.addEventListener("pointermove", follow);
    window.addEventListener("pointerup", end);
  });
};
const focusFactor = (key) => {
  const box = [...at("profile").querySelectorAll("[role=slider]")].find((node) => node.dataset.factor === key);
  if (box) box.focus({ preventScroll: true });
};
const picture = (wide, tall, attributes = {}) => drawing("svg", { viewBox: `0 0 ${wide} ${tall}`, "aria-hidden": "true", ...attributes });

const panel = (name, i, now, wide) => {
  const factor = data.factors[i];
  const x = placesOf(factor, wide);
  const { y, ticks: lines } = axisOf(name);
  const points = factor.levels.map((_, level) => profiled(name, withLevel(i, level)));
  const svg = picture(wide, tallCell, { class: "panel" });
  svg.dataset.factor = factor.key;
  svg.append(...lines.map((value) => drawing("line", { x1: 0, x2: wide, y1: y(value), y2: y(value), class: "guide" })));
  const at_ = x[now[i]];
  svg.append(drawing("line", { x1: at_, x2: at_, y1: 0, y2: tallCell, class: "chosen" }), drawing("polygon", { points: `${at_ - 6},0 ${at_ + 6},0 ${at_},9`, class: "handle" }));
  const known = points.map((point, k) => ({ point, k })).filter(({ point }) => point && point.mean !== null);
  const banded = known.filter(({ point }) => point.low !== null);
  const order = (list) => [...list].sort((a, b) => x[a.k] - x[b.k]);
  if (factor.numeric && banded.length > 1) {
    const upper = order(banded).map(({ point, k }) => `${x[k]},${y(point.high)}`);
    const lower = order(banded).reverse().map(({ point, k }) => `${x[k]},${y(point.low)}`);
    svg.append(drawing("polygon", { points: [...upper, ...lower].join(" "), class: "band" }));
  } else {
    svg.append(...banded.map(({ point, k }) => drawing("rect", { x: x[k] - 6, width: 12, y: y(point.high), height: Math.max(1, y(point.low) - y(point.high)), class: "band" })));
  }
  svg.append(drawing("polyline", { points: order(known).map(({ point, k }) => `${x[k]},${y(point.mean)}`).join(" "), class: factor.numeric ? "trace" : "trace named" }));
  svg.append(...known.map(({ point, k }) => drawing("circle", { cx: x[k], cy: y(point.mean), r: k === now[i] ? 4.5 : 2.5, class: "predicted" })));
  svg.append(...points.flatMap((point, k) => (point && point.observed !== null ? [drawing("circle", { cx: x[k], cy: y(point.observed), r: 3, class: "observed" })] : [])));
  grab(svg, i, wide);
  return svg;
};
// Names of levels in as many lines as they need, those that matter first; one that finds no room is told when chosen.
const levelLabels = (factor, chosen, wide) => {
  const x = placesOf(factor, wide);
  const order = [chosen, 0, factor.levels.length - 1, ...factor.levels.keys()];
  const taken = [[], [], []];
  return [...new Set(order)].flatMap((k) => {
    const half = Math.min(textWidth(factor.levels[k]), wide) / 2;
    const middle = Math.min(wide - half, Math.max(half, x[k]));
    const line = taken.findIndex((ends) => ends.every(([low, high]) => middle + half + 5 < low || middle - half - 5 > high));
    if (line < 0) return [];
    taken[line].push([middle - half, middle + half]);
    return [{ k, middle, line, half }];
  });
};
const heading = (i, now, wide, slides) => {
  const factor = data.factors[i];
  const box = make("div", "factor");
  box.dataset.factor = factor.key;
  box.append(make("b", "", factor.name));
  const labels = levelLabels(factor, now[i], wide);
  const tall = LINE * (1 + Math.max(...labels.map(({ line }) => line))) + 8;
  const svg = picture(wide, tall, { class: "levels" });
  for (const { k, middle, line, half } of labels) {
    const cls = [k === now[i] ? "now" : "", isExcluded(withLevel(i, k)) ? "excluded" : ""].join(" ").trim();
    const wider = textWidth(factor.levels[k]) > wide ? { textLength: 2 * half, lengthAdjust: "spacingAndGlyphs" } : {};
    svg.append(drawing("text", { x: middle, y: 12 + LINE * line, "text-anchor": "middle", class: cls, ...wider }, factor.levels[k]));
  }
  const shares = brushedShares(i);
  if (shares) svg.append(...placesOf(factor, wide).map((x, k) => drawing("rect", { x: x - 8, width: Math.max(0, 16 * shares[k]), y: tall - 6, height: 5, class: "share" })));
  grab(svg, i, wide);
  box.append(svg);
  if (!slides) return box;
  const most = factor.levels.length - 1;
  const says = { role: "slider", tabindex: 0, "aria-label": factor.name, "aria-valuemin": 0, "aria-valuemax": most, "aria-valuenow": now[i], "aria-valuetext": factor.levels[now[i]] };
  for (const [key, value] of Object.entries(says)) box.setAttribute(key, value);
  box.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    setLevels(withLevel(i, Math.min(most, Math.max(0, levelsNow()[i] + step))));
    focusFactor(factor.key);
  });
  return box;
};
// What is predicted, with the name of its interval, and what was observed.
const foretold = (name, levels) => {
  const box = make("div", name === state.response ? "foretold chosen" : "foretold");
  const pick = make("button", "plain", titleOf(name).replaceAll("_", "_\u200b"));
  pick.type = "button";
  pick.title = `Show ${titleOf(name)} in all sections`;
  pick.addEventListener("click", () => choose(name));
  box.append(pick);
  const row = profiled(name, levels);
  if (row === null) {
    box.append(make("span", "", isExcluded(levels) ? "excluded: this combination cannot run" : "no prediction"));
    return box;
  }
  const part = (kind, cls, text) => {
    const node = make("span", cls, text);
    node.dataset.kind = kind;
    box.append(node);
  };
  const { unit } = data.byResponse[name];
  part("predicted", "figure", row.text ? `${row.text} ${unit}`.trim() : "no prediction");
  if (row.interval) part("interval", "", `${data.interval} ${row.interval}`);
  part("observed", "", row.runs ? `observed ${row.observedText} (${row.runs === 1 ? "1 run" : `${row.runs} runs`})` : "not run");
  return box;
};
const gutter = (name) => {
  const { y, ticks: lines } = axisOf(name);
  const svg = picture(GUTTER, tallCell, { class: "gutter" });
  svg.append(...lines.map((value) => drawing("text", { x: GUTTER - 5, y: Math.min(tallCell - 2, Math.max(10, y(value) + 4)), "text-anchor": "end" }, tickText(value))));
  return svg;
};
const block = (name, levels, columns, wide, headed, slides) => {
  const box = make("div", "block");
  box.dataset.response = name;
  const panels = make("div", "panels");
  panels.style.gridTemplateColumns = `${GUTTER}px repeat(${columns}, ${wide}px)`;
  for (let start = 0; start < data.factors.length; start += columns) {
    const part = [...data.factors.keys()].slice(start, start + columns);
    if (headed) panels.append(make("span"), ...part.map((i) => heading(i, levels, wide, slides)), ...Array(columns - part.length).fill().map(() => make("span")));
    panels.append(gutter(name), ...part.map((i) => panel(name, i, levels, wide)), ...Array(columns - part.length).fill().map(() => make("span")));
  }
  box.append(foretold(name, levels), panels);
  return box;
};
const showPlaces = (levels) => {
  const { places = [] } = profileOf(state.response) || {};
  const same = (other) => other.every((level, i) => level === levels[i]);
  at("places").replaceChildren(...places.map(([title, other]) => {
    const button = make("button", "", title);
    button.type = "button";
    button.setAttribute("aria-pressed", String(same(other)));
    button.addEventListener("click", () => { setLevels(other); at("places").querySelectorAll("button")[places.findIndex(([name]) => name === title)].focus(); });
    return button;
  }));
  const said = at("profiled");
  said.replaceChildren(isExcluded(levels) ? make("b", "", "Excluded: this combination cannot run. ") : "");
  const [title, best] = places[0] || [""];
  const other = best ? data.factors.filter((_, i) => best[i] !== levels[i]).map((factor) => factor.name) : [];
  const named = title === "baseline" ? title : `${title.replace("observed", "observed configuration")} for ${titleOf(state.response)}`;
  if (best) said.append(other.length ? `Differs from the ${named} in ${other.join(", ")}.` : `This is the ${named}.`);
  const { centre } = profileOf(state.response) || {};
  if (centre) said.append(` ${centre}`);
};
const showProfiler = () => {
  const able = data.responses.some(profileOf);
  showSection("s-profiler", able);
  if (!able) return;
  const levels = levelsNow();
  showPlaces(levels);
  const shown = new Set([...data.headlines, state.response, ...(data.headlines.length > 1 ? [] : pairNow())]);
  const rows = data.responses.filter((name) => profileOf(name) && (state.every || shown.has(name)));
  const room = at("profile").clientWidth;
  tallCell = TALL_CELLS[rows.length > 2 ? 1 : 0];
  const least = leastCell();
  const beside = room >= HEAD + GUTTER + 3 * least;
  const free = room - GUTTER - (beside ? HEAD : 0);
  const most = Math.max(1, Math.min(data.factors.length, Math.floor(free / least)));
  const columns = Math.ceil(data.factors.length / Math.ceil(data.factors.length / most));
  const wide = Math.max(60, Math.min(CELLS[1], Math.floor(free / columns) - 6));
  const whole = beside && columns === data.factors.length;
  at("profile").classList.toggle("beside", beside);
  at("profile").replaceChildren(...rows.map((name, k) => block(name, levels, columns, wide, !whole || k === 0, k === 0)));
  showTradeoff();
};
at("every-response").addEventListener("change", (event) => { state.every = event.target.checked; showProfiler(); });
window.addEventListener("resize", () => showProfiler());
