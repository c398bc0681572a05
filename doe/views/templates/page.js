// One response, and the whole study.
const names = (section) => Object.keys(data.drawings).filter((name) => data.drawings[name].section === section);
const showResponse = () => {
  const shown = data.byResponse[state.response];
  at("response").value = state.response;
  at("response-name").replaceChildren(withUnit(state.response), ...(shown.title === state.response ? [] : [" ", make("small", "", state.response)]));
  at("response-refused").replaceChildren(...(shown.refused ? [make("p", "notice warn", shown.refused)] : []));
  const words = at("response-words");
  words.replaceChildren();
  if (shown.headlines) {
    const list = make("ul");
    list.append(...[...shown.headlines.effects, shown.headlines.best].map((text) => sentence("li", text)));
    words.append(list);
  }
  showProfiler();
  showCharts(at("response-charts"), shown.charts, names("response"), state.response);
  showCharts(at("check-charts"), shown.charts, names("checks"), state.response);
  showTables(at("response-tables"), shown.tables, 1);
  showGrid();
};
const choose = (name) => {
  if (!data.responses.includes(name)) return;
  state.response = name;
  remember();
  showResponse();
};
// A section that has nothing to show is not there.
const showSection = (id, able) => {
  at(id).hidden = !able;
  document.querySelector(`nav a[href="#${id}"]`).hidden = !able;
};
const showStudy = () => {
  showSection("s-all", [...names("failures"), ...names("all")].some((name) => name in data.study.charts));
  showCharts(at("first-charts"), data.study.charts, names("first"), "study");
  showCharts(at("failure-charts"), data.study.charts, names("failures"), "study");
  showCharts(at("study-charts"), data.study.charts, names("all"), "study");
  showCharts(at("run-charts"), data.study.charts, names("runs"), "study");
  showTables(at("study-tables"), data.study.tables.all, 0);
  showTables(at("paper-tables"), data.study.tables.paper, 0);
  showTables(at("run-tables"), data.study.tables.runs, 0);
};
const select = at("response");
select.append(...data.responses.map((name) => new Option(titleOf(name), name)));
select.addEventListener("change", () => choose(select.value));
// Links to sections leave the address to what is chosen.
for (const link of document.querySelectorAll("nav a")) {
  link.addEventListener("click", (event) => {
    const section = document.querySelector(link.hash);
    event.preventDefault();
    section.open = true;
    section.tabIndex = -1;
    section.focus({ preventScroll: true });
    section.scrollIntoView();
  });
}
recall();
showStudy();
showResponse();
dark.addEventListener("change", () => { showResponse(); showStudy(); });
document.documentElement.dataset.ready = "yes";
