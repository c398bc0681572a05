// The profiler: every response at the chosen levels, as the analysis predicts it and as it was observed.
const FEW_LEVELS = 6;
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
  const row = profile && profile.rows[position(levels)];
  if (!row || row.length === 0) return null;
  const [mean, low, high, observed, text, interval, observedText, runs] = row;
  return { mean, low, high, observed, text, interval, observedText, runs };
};
const levelsNow = () => state.levels || (profileOf(state.response) || {}).best || data.factors.map(() => 0);
const setLevels = (levels) => {
  state.levels = levels;
  remember();
  showProfiler();
};
const switchOf = (factor, i) => {
  const now = levelsNow();
  const box = make("fieldset", "switch");
  box.dataset.factor = factor.key;
  box.append(make("legend", "", factor.name === factor.key ? factor.key : `${factor.name} (${factor.key})`));
  const choose = (level) => setLevels(now.map((old, j) => (j === i ? level : old)));
  const foretold = (level) => {
    const levels = now.map((old, j) => (j === i ? level : old));
    return isExcluded(levels) ? "excluded" : (profiled(state.response, levels) || {}).text || "";
  };
  if (factor.levels.length > FEW_LEVELS) {
    const list = make("select");
    list.setAttribute("aria-label", factor.name);
    list.append(...factor.levels.map((text, level) => new Option(`${text}: ${foretold(level)}`, level, false, level === now[i])));
    list.addEventListener("change", () => { choose(Number(list.value)); focusSwitch(factor.key); });
    box.append(list);
    return box;
  }
  const group = make("span", "segments");
  factor.levels.forEach((text, level) => {
    const button = make("button", "", text);
    button.type = "button";
    button.setAttribute("aria-pressed", String(level === now[i]));
    button.append(make("small", "", foretold(level)));
    button.addEventListener("click", () => { choose(level); focusSwitch(factor.key); });
    group.append(button);
  });
  box.append(group);
  return box;
};
const focusSwitch = (key) => {
  const box = [...at("switches").children].find((node) => node.dataset.factor === key);
  if (box) box.querySelector("[aria-pressed=true], select").focus();
};
// A response on its own axis: the interval, the prediction (dot) and the observed mean (bar).
const profileMark = (profile, row) => {
  const all = profile.rows.flatMap((r) => r.slice(0, 4)).filter((value) => typeof value === "number");
  const low = Math.min(...all);
  const span = Math.max(...all) - low || 1;
  const x = (value) => 4 + (352 * (value - low)) / span;
  const picture = drawing("svg", { viewBox: "0 0 360 16", width: 360, height: 16, "aria-hidden": "true" });
  picture.append(drawing("line", { x1: 4, x2: 356, y1: 8, y2: 8, class: "axis" }));
  if (row.low !== null) picture.append(drawing("line", { x1: x(row.low), x2: x(row.high), y1: 8, y2: 8, class: "span" }));
  if (row.observed !== null) picture.append(drawing("line", { x1: x(row.observed), x2: x(row.observed), y1: 1, y2: 15, class: "observed" }));
  if (row.mean !== null) picture.append(drawing("circle", { cx: x(row.mean), cy: 8, r: 4, class: "predicted" }));
  return picture;
};
const profileRow = (name, levels) => {
  const row = isExcluded(levels) ? null : profiled(name, levels);
  const line = make("tr", name === state.response ? "chosen" : "");
  line.dataset.response = name;
  const head = make("th");
  head.scope = "row";
  const pick = make("button", "plain", withUnit(name));
  pick.type = "button";
  pick.title = `Show ${name} everywhere`;
  pick.addEventListener("click", () => { choose(name); });
  head.append(pick);
  line.append(head);
  if (row === null) {
    const cell = make("td", "", isExcluded(levels) ? "excluded: this combination cannot run" : "no prediction");
    cell.colSpan = 4;
    line.append(cell);
    return line;
  }
  const runs = row.runs === 1 ? "1 run" : `${row.runs} runs`;
  const cells = [row.text || "no prediction", row.interval, row.runs ? `${row.observedText} (${runs})` : "not run"];
  line.append(...["predicted", "interval", "observed"].map((kind, i) => {
    const cell = make("td", "n", cells[i]);
    cell.dataset.kind = kind;
    return cell;
  }));
  const picture = make("td");
  picture.append(profileMark(profileOf(name), row));
  line.append(picture);
  return line;
};
const profileHead = () => {
  const head = make("thead");
  const line = make("tr");
  const titles = ["Response", "Predicted", "95 % interval for all at once", "Observed mean", "Dot: predicted, shade: interval, bar: observed"];
  line.append(...titles.map((title, i) => {
    const cell = make("th", i > 0 && i < 4 ? "n" : "", title);
    cell.scope = "col";
    return cell;
  }));
  head.append(line);
  return head;
};
const showProfiler = () => {
  const able = data.responses.some(profileOf);
  at("s-profiler").hidden = !able;
  const link = document.querySelector('nav a[href="#s-profiler"]');
  if (link) link.hidden = !able;
  if (!able) return;
  const levels = levelsNow();
  at("switches").replaceChildren(...data.factors.map(switchOf));
  const best = (profileOf(state.response) || {}).best;
  const other = best ? data.factors.filter((_, i) => best[i] !== levels[i]).map((factor) => factor.name) : [];
  const told = at("profiled");
  told.replaceChildren(best && other.length === 0 ? `This is the best configuration of ${state.response}.` : "");
  if (other.length > 0) {
    const back = make("button", "", `Best of ${state.response}`);
    back.type = "button";
    back.addEventListener("click", () => { setLevels(best); at("switches").querySelector("button, select").focus(); });
    told.append(`It differs from the best configuration of ${state.response} in ${other.join(", ")}. `, back);
  }
  if (isExcluded(levels)) told.prepend(make("b", "", "Excluded: this combination cannot run. "));
  const centre = (profileOf(state.response) || {}).centre;
  if (centre) told.append(` ${centre}`);
  const body = make("tbody");
  body.append(...data.responses.filter(profileOf).map((name) => profileRow(name, levels)));
  at("profile").replaceChildren(profileHead(), body);
};
