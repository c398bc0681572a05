// Draws charts and tables from the data in this page. Every text goes in as text, never as markup.
const read = async (page) => {
  const bytes = Uint8Array.from(atob(page.getElementById("data").textContent), (character) => character.charCodeAt(0));
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).json();
};
let data = await read(document);
const dark = window.matchMedia("(prefers-color-scheme: dark)");
const at = (id) => document.getElementById(id);
const make = (tag, cls, text) => {
  const node = document.createElement(tag);
  if (cls) node.className = cls;
  if (text !== undefined) node.textContent = text;
  return node;
};
const drawing = (tag, attributes = {}, text) => {
  const node = document.createElementNS("http" + "://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
};
const pencil = document.createElement("canvas").getContext("2d");
pencil.font = `700 12px ${getComputedStyle(document.body).fontFamily}`;
const widths = new Map();
const textWidth = (text) => {
  if (!widths.has(text)) widths.set(text, pencil.measureText(text).width);
  return widths.get(text);
};
// A sentence in which the options of a command are code, which no line breaks.
const sentence = (tag, text) => {
  const node = make(tag);
  text.split(new RegExp(data.option)).forEach((part, i) => node.append(i % 2 ? make("code", "", part) : part));
  return node;
};
const onGround = (colour) => (dark.matches && data.themes.onDark[colour]) || colour;
const titleOf = (name) => data.byResponse[name].title;
const withUnit = (name) => {
  const { unit, title } = data.byResponse[name];
  return unit ? `${title} [${unit}]` : title;
};

// What a person has chosen; the address keeps it.
const finished = data.grid.runs.every((run) => run.state === "done");
const state = { response: data.selected, colour: finished ? "response" : "state", levels: null, pair: null, every: false, part: null };
const remember = () => {
  const chosen = new URLSearchParams({ response: state.response });
  if (state.levels) chosen.set("levels", state.levels.join("."));
  history.replaceState(null, "", `#${chosen}`);
};
const recall = () => {
  const chosen = new URLSearchParams(location.hash.slice(1));
  if (data.responses.includes(chosen.get("response"))) state.response = chosen.get("response");
  const levels = (chosen.get("levels") || "").split(".").map(Number);
  const known = data.factors.every((factor, i) => Number.isInteger(levels[i]) && factor.levels[levels[i]] !== undefined);
  if (known && levels.length === data.factors.length) state.levels = levels;
};
