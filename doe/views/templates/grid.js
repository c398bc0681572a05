// The design grid: a field per configuration, a mark per run, which opens the run.
const GLYPHS = { failed: "×", diverged: "≈", running: "…" };
const share = (values, value, goal) => {
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  const rank = known.length < 2 ? 0 : known.indexOf(value) / (known.length - 1);
  return goal === "max" ? rank : 1 - rank;
};
const ranks = () => data.themes.ranks[dark.matches ? "dark" : "light"];
const rankColour = (part) => ranks()[Math.min(ranks().length - 1, Math.round(part * (ranks().length - 1)))];
const goalOf = (name) => (data.axes[name] || {}).goal;
const stateColour = (i) => onGround(data.grid.states[data.grid.runs[i].state]);
const valueColour = (i) => {
  const values = data.grid.values[state.response];
  return values[i] === null ? "" : rankColour(share(values, values[i], goalOf(state.response)));
};
const told = (i) => {
  const run = data.grid.runs[i];
  const value = `${titleOf(state.response)} ${data.grid.texts[state.response][i]} ${data.byResponse[state.response].unit}`;
  return [run.id, run.config, run.state + (run.reason ? `: ${run.reason}` : ""), value].join("\n");
};
const runMark = (i) => {
  const run = data.grid.runs[i];
  const colour = state.colour === "state" ? stateColour(i) : valueColour(i);
  const mark = make("button", `run ${run.state}`, GLYPHS[run.state] || "");
  mark.type = "button";
  mark.tabIndex = -1;
  mark.style.background = colour || "transparent";
  if (!colour) mark.style.color = "inherit";
  if (!colour) mark.style.outline = `1px dashed ${stateColour(i)}`;
  mark.dataset.run = run.id;
  mark.dataset.colour = colour;
  mark.dataset.told = told(i);
  mark.setAttribute("aria-label", told(i).replaceAll("\n", ", "));
  mark.addEventListener("click", () => openRun(i));
  return mark;
};
const swatch = (colour, text) => {
  const item = make("span");
  const sample = make("i");
  sample.style.background = colour;
  item.append(sample, text);
  return item;
};
const rankLegend = () => {
  const item = make("span");
  item.append(`${titleOf(state.response)}: worst `, ...ranks().map((colour) => swatch(colour, "")), "best fifth");
  return item;
};
const showLegend = () => {
  const { runs, states } = data.grid;
  const count = (name) => runs.filter((run) => run.state === name).length;
  if (state.colour === "state") {
    at("grid-legend").replaceChildren(...Object.keys(states).filter(count).map((name) => swatch(onGround(states[name]), `${GLYPHS[name] || ""} ${name} (${count(name)})`)));
  } else {
    at("grid-legend").replaceChildren(rankLegend());
  }
};
const showGrid = () => {
  const { grid } = data;
  const cells = new Map();
  const key = (x, y) => `${x},${y}`;
  grid.runs.forEach((run, i) => cells.set(key(run.x, run.y), [...(cells.get(key(run.x, run.y)) || []), i]));
  const place = at("grid");
  place.style.gridTemplateColumns = `auto repeat(${grid.columns.length}, minmax(max-content, 1fr))`;
  place.replaceChildren(make("span", "corner"), ...grid.columns.map((text) => make("span", "head", text.replaceAll(" · ", "\n"))));
  grid.rows.forEach((text, down) => {
    place.append(make("span", "side", text));
    grid.columns.forEach((_, over) => {
      const cell = make("div", "cell");
      cell.append(...(cells.get(key(over, down)) || []).map(runMark));
      place.append(cell);
    });
  });
  const first = place.querySelector(".run");
  if (first) first.tabIndex = 0;
  showLegend();
  at("by-state").setAttribute("aria-pressed", String(state.colour === "state"));
  at("by-response").setAttribute("aria-pressed", String(state.colour === "response"));
  at("by-response").textContent = titleOf(state.response);
};
const tip = at("tip");
const tell = (text, x, y) => {
  tip.hidden = !text;
  if (!text) return;
  tip.textContent = text;
  tip.style.left = `${Math.max(8, Math.min(x + 12, window.innerWidth - tip.offsetWidth - 8))}px`;
  tip.style.top = `${Math.min(y + 14, window.innerHeight - tip.offsetHeight - 8)}px`;
};
at("grid").addEventListener("mousemove", (event) => tell(event.target.dataset.told, event.clientX, event.clientY));
at("grid").addEventListener("mouseleave", () => tell(""));
at("grid").addEventListener("focusin", (event) => {
  const box = event.target.getBoundingClientRect();
  if (event.target.matches(":focus-visible")) tell(event.target.dataset.told, box.left, box.bottom);
});
at("grid").addEventListener("focusout", () => tell(""));
// One mark is reached by Tab, the others from there by the arrow keys.
at("grid").addEventListener("keydown", (event) => {
  const marks = [...at("grid").querySelectorAll(".run")];
  const now = marks.indexOf(event.target);
  const box = event.target.getBoundingClientRect();
  const beyond = { ArrowDown: (b) => b.top > box.top + 2, ArrowUp: (b) => b.top < box.top - 2 }[event.key];
  let next = marks[now + { ArrowRight: 1, ArrowLeft: -1 }[event.key]];
  if (beyond) {
    const away = (mark) => { const b = mark.getBoundingClientRect(); return Math.abs(b.top - box.top) * 1000 + Math.abs(b.left - box.left); };
    next = marks.filter((mark) => beyond(mark.getBoundingClientRect())).sort((a, b) => away(a) - away(b))[0];
  }
  if (now < 0 || !next) return;
  event.preventDefault();
  event.target.tabIndex = -1;
  next.tabIndex = 0;
  next.focus();
});
for (const colour of ["state", "response"]) {
  at(`by-${colour}`).addEventListener("click", () => { state.colour = colour; showGrid(); });
}

// The card of a run.
const curveOf = ({ name, text, log, points }) => {
  const box = make("figure", "curve");
  const picture = drawing("svg", { viewBox: "0 0 260 90", width: 260, height: 90, role: "img", "aria-label": text });
  const scaled = points.map(([x, y]) => [x, log ? Math.log(y) : y]);
  const ends = [0, 1].map((k) => [Math.min(...scaled.map((p) => p[k])), Math.max(...scaled.map((p) => p[k]))]);
  const place = (value, [low, high], length) => (length * (value - low)) / (high - low || 1);
  const path = scaled.map(([x, y]) => `${4 + place(x, ends[0], 252)},${86 - place(y, ends[1], 80)}`).join(" ");
  const single = drawing("circle", { cx: 4, cy: 84, r: 2.5 });
  picture.append(drawing("line", { x1: 4, x2: 256, y1: 88, y2: 88, class: "axis" }), points.length > 1 ? drawing("polyline", { points: path }) : single);
  box.append(picture, make("figcaption", "", `${text}${log ? " (logarithmic)" : ""}`));
  box.dataset.curve = name;
  return box;
};
const definitions = (pairs) => {
  const list = make("dl", "pairs");
  list.append(...pairs.flatMap(([name, text]) => [make("dt", "", name), make("dd", "", text)]));
  return list;
};
const openRun = (i) => {
  const run = data.grid.runs[i];
  const card = data.cards[i];
  at("run-title").textContent = `Run ${run.id}: ${run.state}`;
  const body = at("run-body");
  const part = (title, ...nodes) => body.append(make("h3", "", title), ...nodes);
  body.replaceChildren();
  if (card.error) body.append(make("pre", "notice warn", card.error));
  part("Settings", definitions([...data.factors.map((factor, k) => [factor.name, card.given[k]]), ...card.facts]));
  const values = data.responses.filter((name) => data.grid.values[name][i] !== null);
  if (values.length) part("Responses", definitions(values.map((name) => [titleOf(name), `${data.grid.texts[name][i]} ${data.byResponse[name].unit}`])));
  if ((card.curves || []).length) part("Learning curve", ...card.curves.map(curveOf));
  part("End of the log", card.log ? make("pre", "", card.log) : make("p", "quiet", "There is no log."));
  for (const [id, other] of [["run-before", i - 1], ["run-after", i + 1]]) {
    at(id).disabled = !data.grid.runs[other];
    at(id).onclick = () => openRun(other);
  }
  if (!at("run").open) at("run").showModal();
  body.scrollTop = 0;
};
at("run-close").addEventListener("click", () => at("run").close());
at("run").addEventListener("click", (event) => { if (event.target === at("run")) at("run").close(); });
