// Charts: a drawing is shared by all responses and filled when it comes into sight.
const records = (set) => set.rows.map((row) => Object.fromEntries(set.keys.map((key, i) => [key, row[i]])));
const worded = (part, words) => {
  if (Array.isArray(part)) return part.map((item) => worded(item, words));
  if (part && typeof part === "object") {
    return Object.fromEntries(Object.entries(part).map(([key, item]) => [key, worded(item, words)]));
  }
  const key = typeof part === "string" && part.startsWith("{") && part.endsWith("}") ? part.slice(1, -1) : null;
  return key !== null && key in words ? words[key] : part;
};
const NARROW = 360;  // pixels below which a legend has one column
const recoloured = (spec, narrow) => JSON.parse(JSON.stringify(spec), (key, value) => {
  if (key === "legend" && value && value.columns === 2 && narrow) return { ...value, columns: 1 };
  return typeof value === "string" ? onGround(value) : value;
});
// Panels share the width of their card; where they would be too narrow, they stand one below another.
const LEAST_PANEL = 90;
const AXIS = 44;
const fitted = ({ chart: { words }, view }) => {
  if (!words.columns || !words.width) return words;
  const labels = Math.min(words.labels || AXIS, view.clientWidth - LEAST_PANEL - 60);
  const each = (columns) => Math.floor((view.clientWidth - labels) / columns) - (words.labels ? 18 : 8);
  if (!words.labels) {
    const width = each(words.columns);
    return { ...words, width, room: Math.floor((words.room * width) / words.width) };
  }
  const columns = each(words.columns) < LEAST_PANEL ? 1 : words.columns;
  const width = each(columns);
  return { ...words, labels, columns, width, legend: width * columns > 340 ? 4 : width * columns > 140 ? 2 : 1 };
};
// A chart of the whole study takes the width of its card, or what its columns need.
const wide = ({ name, chart, view }) => {
  const { columns, width: panel } = chart.words;
  if (panel || !("layer" in data.drawings[name].spec || "mark" in data.drawings[name].spec)) return {};
  const width = Math.max(view.clientWidth, columns ? 160 + 24 * columns : 0);
  return { width, autosize: { type: "fit-x", contains: "padding" } };
};
const draw = async (figure) => {
  const { name, chart } = figure;
  const datasets = Object.fromEntries(Object.entries(chart.datasets).map(([key, set]) => [key, records(set)]));
  const theme = { ...data.themes[dark.matches ? "dark" : "light"], background: null, font: getComputedStyle(document.body).fontFamily };
  const spec = { ...worded(recoloured(data.drawings[name].spec, figure.view.clientWidth < NARROW), fitted(figure)), datasets, config: theme, ...wide(figure) };
  const made = await vegaEmbed(figure.view, spec, {
    renderer: "svg",
    actions: false,
    tooltip: { theme: dark.matches ? "dark" : "light" },
  });
  figure.drawn = made.view;
  figure.view.setAttribute("role", "img");  // Vega writes a label of its own
  figure.view.setAttribute("aria-label", figure.label);
  if (figure.view.scrollWidth > figure.view.clientWidth) figure.view.tabIndex = 0;  // so that keys scroll it
  figure.view.dataset.drawn = figure.key;
};
const figures = new Map();
const begin = (figure) => {
  if (figure.begun || figure.view.closest("details:not([open])")) return;  // a closed section has no width
  figure.begun = true;
  draw(figure).catch((error) => { figure.view.textContent = `This chart cannot be drawn: ${error.message}`; });
};
// Charts out of sight follow when the browser rests, so that a print has them all.
const later = window.requestIdleCallback || ((call) => setTimeout(call, 50));
const drawRest = () => {
  const next = [...figures.values()].find((figure) => !figure.begun && !figure.view.closest("details:not([open])"));
  if (next) { begin(next); later(drawRest); }
};
window.addEventListener("beforeprint", () => figures.forEach(begin));
const offer = (name, text) => {
  const link = make("a");
  link.href = text;
  link.download = name;
  link.click();
};
const tool = (text, label, act) => {
  const button = make("button", "", text);
  button.type = "button";
  button.setAttribute("aria-label", label);
  button.addEventListener("click", act);
  return button;
};
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const figure = figures.get(entry.target);
    if (entry.isIntersecting && figure) begin(figure);
  }
}, { rootMargin: "300px" });
// A chart whose data are the same stays as it is.
const showCharts = (place, charts, names, key) => {
  const before = new Map();
  const tall = new Map();  // room for what is drawn anew, so that nothing moves meanwhile
  for (const view of place.querySelectorAll(".view")) {
    const figure = figures.get(view);
    before.set(figure.marked, view.closest("figure"));
    tall.set(figure.name, `${view.offsetHeight}px`);
  }
  const boxes = [];
  for (const name of names) {
    if (!(name in charts)) continue;
    const marked = JSON.stringify([key, name, dark.matches, charts[name]]);
    if (before.has(marked)) {
      boxes.push(before.get(marked));
      before.delete(marked);
      continue;
    }
    const { title, caption } = data.drawings[name];
    const box = make("figure", "chart");
    box.style.margin = "0";
    box.dataset.chart = name;
    const view = make("div", "view");
    view.style.minHeight = tall.get(name) || "";
    const figure = { name, chart: charts[name], view, key: `${key}/${name}`, marked, label: `${title}${key in data.byResponse ? ` of ${withUnit(key)}` : ""}: ${caption}` };
    const save = async (kind) => {
      begin(figure);
      while (!figure.drawn) await new Promise((done) => setTimeout(done, 50));
      offer(`${key}-${name}.${kind}`, await figure.drawn.toImageURL(kind, kind === "png" ? 3 : 1));
    };
    const tools = make("div", "tools");
    tools.append(...["svg", "png"].map((kind) => tool(kind.toUpperCase(), `Save ${title} as ${kind.toUpperCase()}`, () => save(kind))));
    const words = make("figcaption");
    words.append(make("p", "", caption), tools);
    const picture = make("div", "picture");
    picture.append(make("h3", "", title), view);
    box.append(picture, words);
    boxes.push(box);
    figures.set(view, figure);
    watcher.observe(view);
  }
  for (const box of before.values()) {
    const view = box.querySelector(".view");
    watcher.unobserve(view);
    figures.delete(view);
  }
  place.replaceChildren(...boxes);
  later(drawRest);
};
