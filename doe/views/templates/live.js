// Served pages only: shows how the study moves on, and renews what a new result has changed.
const { dataset } = document.documentElement;
const showMoment = (moment) => {
  at("done").textContent = moment.done;
  if (!at("provisional")) return;
  at("progress").textContent = moment.progress;
  at("left").textContent = moment.left;
  const meter = at("meter");
  meter.setAttribute("aria-label", moment.progress);
  meter.replaceChildren(...moment.bars.filter(([, count]) => count).map(([name, count, colour]) => {
    const part = make("span");
    part.style.flex = String(count);
    part.style.background = onGround(colour);
    part.title = `${count} ${name}`;
    return part;
  }));
  const head = make("tr");
  head.append(...moment.columns.map((title) => make("th", "", title)));
  const rows = moment.running.map((cells) => {
    const row = make("tr");
    row.append(...cells.map((text) => make("td", "", text)));
    return row;
  });
  at("running").replaceChildren(...(rows.length ? [head, ...rows] : []));
  const changed = data.grid.runs.filter((run) => moment.states[run.id] !== run.state);
  for (const run of changed) run.state = moment.states[run.id];
  if (changed.length) showGrid();
};
// What is being read: the first table, chart or section on the screen that holds no other of them there, if there is
// one that begins on the screen; one that began above it may grow by rows that are out of sight.
const PLACES = "section[id], [data-chart], [data-table]";
const BELOW_NAV = 60;
const readingPlace = () => {
  const shown = [...document.querySelectorAll(PLACES)].filter((node) => {
    const { top, bottom, height } = node.getBoundingClientRect();
    return height && bottom > BELOW_NAV && top < window.innerHeight;
  });
  const innermost = shown.filter((node) => !shown.some((other) => other !== node && node.contains(other)));
  return innermost.find((node) => node.getBoundingClientRect().top > BELOW_NAV) || innermost[0];
};
const samePlace = (node) => {
  const { table, chart } = node.dataset;
  const key = table ? `[data-table="${CSS.escape(table)}"]` : chart ? `[data-chart="${CSS.escape(chart)}"]` : `#${node.id}`;
  return document.querySelector(key);
};
// What the new page says goes into this one: choices, open tables and the place on the page stay.
const renew = async (text) => {
  const page = new DOMParser().parseFromString(text, "text/html");
  const fresh = await read(page);
  dataset.version = page.documentElement.dataset.version;
  const place = readingPlace();
  const top = place && place.getBoundingClientRect().top;
  for (const part of document.querySelectorAll("[data-part]")) {
    const next = page.querySelector(`[data-part="${part.dataset.part}"]`);
    if (next) part.replaceWith(document.importNode(next, true));
  }
  if (!page.getElementById("provisional")) document.querySelectorAll(".badge").forEach((badge) => badge.remove());
  data = fresh;
  showResponse();
  showStudy();
  const now = place && samePlace(place);
  if (now) window.scrollBy(0, now.getBoundingClientRect().top - top);
};
const ask = async () => {
  try {
    const answer = await fetch("state", { cache: "no-store" });
    if (!answer.ok) return;
    const moment = await answer.json();
    if (moment.version !== dataset.version) await renew(await (await fetch("./", { cache: "no-store" })).text());
    showMoment(moment);
  } catch { /* the server has ended; the page stays as it is */ }
};
ask();
setInterval(ask, 2000);
