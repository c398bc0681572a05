"use strict";
// Draws charts and tables from the data in this page. Every text goes in as text, never as markup.
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const at = (id) => document.getElementById(id);
  const make = (tag, cls, text) => {
    const node = document.createElement(tag);
    if (cls) node.className = cls;
    if (text !== undefined) node.textContent = text;
    return node;
  };
  const state = { response: data.selected, colour: "state" };

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
  const recoloured = (spec) => {
    const swap = (text, [from, to]) => text.replaceAll(`"${from}"`, `"${to}"`);
    return JSON.parse(Object.entries(data.themes.onDark).reduce(swap, JSON.stringify(spec)));
  };
  const draw = async (figure) => {
    const { name, chart } = figure;
    const datasets = Object.fromEntries(Object.entries(chart.datasets).map(([key, set]) => [key, records(set)]));
    const theme = { ...data.themes[dark.matches ? "dark" : "light"], background: null };
    const drawing = dark.matches ? recoloured(data.drawings[name].spec) : data.drawings[name].spec;
    const spec = { ...worded(drawing, chart.words), datasets, config: theme };
    await vegaEmbed(figure.view, spec, {
      renderer: "svg",
      actions: false,
      tooltip: { theme: dark.matches ? "dark" : "light" },
    });
    figure.view.dataset.drawn = figure.key;
  };
  const figures = new Map();
  const watcher = new IntersectionObserver((entries) => {
    for (const entry of entries) {
      const figure = figures.get(entry.target);
      if (entry.isIntersecting && figure && !figure.begun) {
        figure.begun = true;
        draw(figure).catch((error) => { figure.view.textContent = `This chart cannot be drawn: ${error.message}`; });
      }
    }
  }, { rootMargin: "300px" });
  const showCharts = (place, charts, names, key) => {
    for (const node of place.querySelectorAll(".view")) { watcher.unobserve(node); figures.delete(node); }
    place.replaceChildren();
    for (const name of names) {
      if (!(name in charts)) continue;
      const { title, caption } = data.drawings[name];
      const box = make("figure", "chart");
      box.style.margin = "0";
      box.dataset.chart = name;
      const view = make("div", "view");
      view.setAttribute("role", "img");
      view.setAttribute("aria-label", `${title}: ${caption}`);
      box.append(make("h3", "", title), view, make("p", "", caption));
      place.append(box);
      figures.set(view, { name, chart: charts[name], view, key: `${key}/${name}` });
      watcher.observe(view);
    }
  };

  // Tables: sorted by raw values within their sections.
  const compare = (a, b, sign) => {
    if (a === null || b === null) return (a === null) - (b === null);
    return sign * (typeof a === "string" || typeof b === "string" ? String(a).localeCompare(String(b)) : a - b);
  };
  const sorted = (rows, i, sign) => {
    const groups = [[]];
    for (const row of rows) {
      if (row.style === "section") groups.push([row]); else groups[groups.length - 1].push(row);
    }
    const fixed = (row) => row.style === "section" || row.style === "total";
    return groups.flatMap((group) => [
      ...group.filter((row) => row.style === "section"),
      ...group.filter((row) => !fixed(row)).sort((x, y) => compare(x.raw[i], y.raw[i], sign)),
      ...group.filter((row) => row.style === "total"),
    ]);
  };
  const fillRow = (table, row, largest) => {
    const line = make("tr", row.style);
    if (row.style === "section") {
      const cell = make("td", "", row.text[0]);
      cell.colSpan = table.columns.length;
      line.append(cell);
      return line;
    }
    table.columns.forEach((column, i) => {
      const mark = row.marks && row.marks[column.key] ? `m-${row.marks[column.key]}` : "";
      const long = !column.numeric && row.text[i].length > 60 ? "long" : "";
      const cell = make("td", [column.numeric ? "n" : "", column.bar ? "barcell" : "", mark, long].join(" ").trim(), row.text[i]);
      if (column.bar && typeof row.raw[i] === "number") {
        const bar = make("span", "bar");
        bar.style.width = `${largest[i] > 0 ? 100 * Math.abs(row.raw[i]) / largest[i] : 0}%`;
        cell.replaceChildren(bar);
      }
      line.append(cell);
    });
    return line;
  };
  const showTable = (table, open) => {
    const box = make("details", "table");
    box.dataset.table = table.name;
    box.append(make("summary", "", table.title));
    const fill = () => {
      if (box.children.length > 1) return;
      const grid = make("table");
      const head = make("tr");
      const body = make("tbody");
      const largest = table.columns.map((_, i) => Math.max(0, ...table.rows.map((row) => Math.abs(Number(row.raw[i]) || 0))));
      const put = (rows) => body.replaceChildren(...rows.map((row) => fillRow(table, row, largest)));
      table.columns.forEach((column, i) => {
        const th = make("th", column.numeric ? "n" : "", column.title);
        th.scope = "col";
        th.tabIndex = 0;
        const sort = () => {
          const down = th.getAttribute("aria-sort") !== "descending" && (th.hasAttribute("aria-sort") || column.numeric || column.bar);
          for (const other of head.children) other.removeAttribute("aria-sort");
          th.setAttribute("aria-sort", down ? "descending" : "ascending");
          put(sorted(table.rows, i, down ? -1 : 1));
        };
        th.addEventListener("click", sort);
        th.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
        head.append(th);
      });
      put(table.rows);
      const top = make("thead");
      top.append(head);
      grid.append(top, body);
      const scroll = make("div", "scroll");
      scroll.append(grid);
      const notes = make("div", "notes");
      notes.append(...table.notes.map((note) => make("p", "", note)));
      box.append(scroll, notes);
    };
    box.addEventListener("toggle", () => { if (box.open) fill(); });
    if (open) { box.open = true; fill(); }
    return box;
  };
  const showTables = (place, tables, open = 0) => place.replaceChildren(...tables.map((table, i) => showTable(table, i < open)));

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

  // One response.
  const names = (section) => Object.keys(data.drawings).filter((name) => data.drawings[name].section === section);
  const showResponse = () => {
    const found = data.byResponse[state.response];
    at("response").value = state.response;
    at("response-name").textContent = found.unit ? `${state.response} (${found.unit})` : state.response;
    at("response-refused").replaceChildren(...(found.refused ? [make("p", "notice warn", found.refused)] : []));
    const words = at("response-words");
    words.replaceChildren();
    if (found.headlines && !data.headlines.includes(state.response)) {
      const list = make("ul");
      list.append(...[...found.headlines.effects, found.headlines.best].map((text) => make("li", "", text)));
      words.append(list);
    }
    showCharts(at("response-charts"), found.charts, names("response"), state.response);
    showTables(at("response-tables"), found.tables, 1);
    showGrid();
  };
  const choose = (name) => {
    if (!data.responses.includes(name)) return;
    state.response = name;
    history.replaceState(null, "", `#response=${encodeURIComponent(name)}`);
    showResponse();
  };
  const select = at("response");
  select.append(...data.responses.map((name) => new Option(name, name)));
  select.addEventListener("change", () => choose(select.value));
  const asked = /^#response=(.*)$/.exec(location.hash);
  if (asked && data.responses.includes(decodeURIComponent(asked[1]))) state.response = decodeURIComponent(asked[1]);

  const showStudy = () => {
    showCharts(at("study-charts"), data.study.charts, names("all"), "study");
    showCharts(at("run-charts"), data.study.charts, names("runs"), "study");
  };
  showResponse();
  showStudy();
  showTables(at("study-tables"), data.study.tables.all, 0);
  showTables(at("paper-tables"), data.study.tables.paper, 0);
  showTables(at("run-tables"), data.study.tables.runs, 0);
  dark.addEventListener("change", () => { showResponse(); showStudy(); });
  document.documentElement.dataset.ready = "yes";
})();
