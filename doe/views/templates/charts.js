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
const recoloured = (spec) => JSON.parse(JSON.stringify(spec), (_, value) => (typeof value === "string" ? onGround(value) : value));
// Texts in as many lines as they need, by the width that they have.
const inLines = (text, room) => text.split(/\s*\n| /).reduce((lines, part) => {
  const longer = `${lines[lines.length - 1]} ${part}`.trim();
  return textWidth(longer) > room && lines[lines.length - 1] ? [...lines, part] : [...lines.slice(0, -1), longer];
}, [""]).join("\n");
const rewritten = (datasets, field, room) => {
  const lines = new Map(Object.values(datasets).flatMap((set) => set.map((record) => [record[field], inLines(record[field], room)])));
  const tall = field === "row" ? 0 : Math.max(...[...lines.values()].map((text) => text.split("\n").length));
  const write = (text) => " \n".repeat(Math.max(0, tall - lines.get(text).split("\n").length)) + lines.get(text);
  const made = Object.entries(datasets).map(([key, set]) => [key, set.map((record) => ({ ...record, [field]: write(record[field]) }))]);
  return { datasets: Object.fromEntries(made), lines: [...lines.values()].map((text) => text.split("\n")) };
};
// Panels share the width of their card: as many in a row as have their least width, rows filled alike.
const AXIS = 44;
const GAP = 10;
const TALL = [220, 120];  // of one row, of several
const LEGEND = 112;
const fitted = (words, whole) => {
  const room = whole - Math.min(words.labels || AXIS, whole / 2) - 8;
  const legend = words.groups ? { legend: Math.max(1, Math.min(words.groups.length, Math.floor(room / LEGEND))) } : {};
  if (words.choose) return { ...words, columns: 1, printed: 1, width: whole - 2 * AXIS, height: 220 };
  if (!words.panels) return { ...words, ...legend };
  const gap = words.gap || GAP;
  const rows = Math.ceil(words.panels / Math.max(1, Math.min(words.panels, Math.floor((room + gap) / (words.least + gap)))));
  const columns = Math.ceil(words.panels / rows);
  const width = Math.floor((room + gap) / columns) - gap;
  return { ...words, ...legend, columns, width, height: TALL[rows > 1 ? 1 : 0] };
};
// What fills a drawing in the width that it has: labels of rows take half of it at most.
const LINE_STEP = 14;
const arranged = ({ chart, view }, narrower) => {
  const datasets = chosenRecords(chart);
  const whole = view.clientWidth - narrower;
  if (chart.words.step) {
    const made = rewritten(datasets, "row", 0.46 * whole);
    const step = Math.max(chart.words.step, LINE_STEP * Math.max(...made.lines.map((lines) => lines.length)) + 10);
    const words = fitted({ ...chart.words, step, labels: Math.max(...made.lines.flat().map(textWidth)) + 8 }, whole);
    return { words, datasets: made.datasets };
  }
  const words = fitted(chart.words, whole);
  return { words, datasets: words.titles ? rewritten(datasets, words.titles, words.width).datasets : datasets };
};
// A chart of the whole study takes the width of its card, or what its columns need at least and at most.
const wide = ({ name, chart: { words }, view }) => {
  if (words.panels || words.choose || !("layer" in data.drawings[name].spec || "mark" in data.drawings[name].spec)) return {};
  const [least, most] = words.cell ? words.cell.map((cell) => words.labels + (words.beyond || 0) + cell * words.columns) : [0, Infinity];
  return { width: Math.min(most, Math.max(least, view.clientWidth)), autosize: { type: "fit-x", contains: "padding" } };
};
// Of a chart with a choice, the part that is chosen.
const parts = ({ words, datasets }) => [...new Set(Object.values(datasets).flatMap((set) => set.rows.map((row) => row[set.keys.indexOf(words.choose)])))];
const chosenRecords = ({ words, datasets }) => {
  const every = Object.entries(datasets).map(([key, set]) => [key, records(set)]);
  if (!words.choose) return Object.fromEntries(every);
  const known = parts({ words, datasets });
  const part = known.includes(state.part) ? state.part : known[0];
  return Object.fromEntries(every.map(([key, rows]) => [key, rows.filter((row) => row[words.choose] === part).map((row) => ({ ...row, rank: 0 }))]));
};
const partPicker = (figure) => {
  const picker = make("select", "part");
  picker.setAttribute("aria-label", "Factors of the map");
  const known = parts(figure.chart);
  picker.append(...known.map((part) => new Option(part, part, false, part === state.part)));
  picker.addEventListener("change", () => { state.part = picker.value; draw(figure); });
  return known.length > 1 ? [picker] : [];
};
const draw = async (figure, narrower = 0) => {
  const { name } = figure;
  const { words, datasets } = arranged(figure, narrower);
  const theme = { ...data.themes[dark.matches ? "dark" : "light"], background: null, font: getComputedStyle(document.body).fontFamily };
  const filled = worded(recoloured(data.drawings[name].spec), words);
  const spec = { ...filled, datasets, config: theme, ...wide(figure) };
  const made = await vegaEmbed(figure.view, spec, {
    renderer: "svg",
    actions: false,
    tooltip: { theme: dark.matches ? "dark" : "light" },
  });
  // Names below the last panel may reach beyond it: what they need is taken from the panels.
  const beyond = words.panels ? Number(figure.view.querySelector("svg").getAttribute("width")) - figure.view.clientWidth : 0;
  if (beyond > 1 && !narrower) { await draw(figure, beyond); return; }
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
// Any drawing of the page as a file of its own, with the look that it has here.
const LOOK = ["fill", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family"];
const savePicture = async (svg, name, kind) => {
  const copy = svg.cloneNode(true);
  const { width, height } = svg.viewBox.baseVal;
  const from = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, i) => {
    const look = getComputedStyle(from[i]);
    node.setAttribute("style", LOOK.map((key) => `${key}:${look.getPropertyValue(key)}`).join(";"));
  });
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  const address = URL.createObjectURL(new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" }));
  if (kind === "svg") { offer(`${name}.svg`, address); return; }
  const image = new Image();
  image.src = address;
  await image.decode();
  const canvas = make("canvas");
  [canvas.width, canvas.height] = [3 * width, 3 * height];
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  offer(`${name}.png`, canvas.toDataURL("image/png"));
};
// Charts out of sight follow when the browser rests, so that a print has them all.
const later = (call) => (window.requestIdleCallback ? window.requestIdleCallback(call, { timeout: 300 }) : setTimeout(call, 50));
const drawRest = () => {
  const next = [...figures.values()].find((figure) => !figure.begun && !figure.view.closest("details:not([open])"));
  if (next) { begin(next); later(drawRest); }
};
document.querySelectorAll(".fold").forEach((fold) => fold.addEventListener("toggle", () => later(drawRest)));
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
const savers = (title, save) => ["svg", "png"].map((kind) => tool(kind.toUpperCase(), `Save ${title} as ${kind.toUpperCase()}`, () => save(kind)));
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
    tools.append(...savers(title, save));
    const words = make("figcaption");
    words.append(make("p", "", caption));
    const head = make("div", "head");
    head.append(make("h3", "", title), tools);
    box.append(head, ...(charts[name].words.choose ? partPicker(figure) : []), view, words);
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
