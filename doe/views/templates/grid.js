// The design grid.
const RAMP = ["#fde725", "#7ad151", "#22a884", "#2a788e", "#414487", "#440154"];
const quantile = (values, value) => {
  const known = values.filter((v) => v !== null).sort((a, b) => a - b);
  return known.length < 2 ? 0 : known.findIndex((v) => v >= value) / (known.length - 1);
};
const mix = (share) => RAMP[Math.min(RAMP.length - 1, Math.max(0, Math.round(share * (RAMP.length - 1))))];
const tip = at("tip");
const showGrid = () => {
  const grid = data.grid;
  const place = at("grid");
  const values = grid.values[state.response];
  const texts = grid.texts[state.response];
  const unit = data.byResponse[state.response].unit;
  const cells = new Map();
  const key = (x, y) => `${x},${y}`;
  grid.runs.forEach((run, i) => cells.set(key(run.x, run.y), [...(cells.get(key(run.x, run.y)) || []), i]));
  place.style.gridTemplateColumns = `auto repeat(${grid.columns.length}, auto)`;
  place.replaceChildren(make("span", "corner"), ...grid.columns.map((text) => make("span", "head", text)));
  grid.rows.forEach((text, down) => {
    place.append(make("span", "side", text));
    grid.columns.forEach((_, over) => {
      const cell = make("div", "cell");
      for (const i of cells.get(key(over, down)) || []) {
        const run = grid.runs[i];
        const mark = make("span", "run");
        const value = values[i];
        const colour = state.colour === "state" ? grid.states[run.state] : value === null ? "" : mix(quantile(values, value));
        mark.style.background = colour || "transparent";
        if (!colour) mark.style.outline = `1px dashed ${grid.states[run.state]}`;
        mark.dataset.run = run.id;
        mark.dataset.colour = colour;
        const told = [run.id, run.config, run.state + (run.reason ? `: ${run.reason}` : ""), `${state.response} ${texts[i]} ${unit}`];
        mark.dataset.told = told.join("\n");
        cell.append(mark);
      }
      place.append(cell);
    });
  });
  const legend = at("grid-legend");
  if (state.colour === "state") {
    const seen = Object.keys(grid.states).filter((name) => grid.runs.some((run) => run.state === name));
    legend.replaceChildren(...seen.map((name) => {
      const item = make("span");
      const swatch = make("i");
      swatch.style.background = grid.states[name];
      item.append(swatch, `${name} (${grid.runs.filter((run) => run.state === name).length})`);
      return item;
    }));
  } else {
    const ramp = make("i", "ramp");
    ramp.style.background = `linear-gradient(90deg, ${RAMP.join(",")})`;
    const item = make("span");
    item.append(`${state.response}: lowest`, ramp, "highest (by rank)");
    legend.replaceChildren(item);
  }
  at("by-state").setAttribute("aria-pressed", String(state.colour === "state"));
  at("by-response").setAttribute("aria-pressed", String(state.colour === "response"));
  at("by-response").textContent = state.response;
};
at("grid").addEventListener("mousemove", (event) => {
  const told = event.target.dataset.told;
  tip.hidden = !told;
  if (told) {
    tip.textContent = told;
    tip.style.left = `${Math.min(event.clientX + 12, window.innerWidth - tip.offsetWidth - 8)}px`;
    tip.style.top = `${event.clientY + 14}px`;
  }
});
at("grid").addEventListener("mouseleave", () => { tip.hidden = true; });
for (const colour of ["state", "response"]) {
  at(`by-${colour}`).addEventListener("click", () => { state.colour = colour; showGrid(); });
}
