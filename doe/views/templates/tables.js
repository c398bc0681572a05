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
const LONG = 26;
// Terms and configurations may break after a whole factor.
const breakable = (text) => text.split(/(?<=[:,=])(?=\S)/).flatMap((part, i) => (i ? [make("wbr"), part] : [part]));
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
    const long = !column.numeric && row.text[i].length > LONG ? "long" : "";
    const cell = make("td", [column.numeric ? "n" : "", column.bar ? "barcell" : "", mark, long].join(" ").trim(), long ? undefined : row.text[i]);
    if (long) cell.append(...breakable(row.text[i]));
    if (column.bar && typeof row.raw[i] === "number") {
      const bar = make("span", "bar");  // from zero, which is in the middle where some are below it
      const both = table.rows.some((other) => other.raw[i] < 0);
      const share = largest[i] > 0 ? (both ? 50 : 100) * Math.abs(row.raw[i]) / largest[i] : 0;
      bar.style.width = `${share}%`;
      if (both) bar.style.marginLeft = `${row.raw[i] < 0 ? 50 - share : 50}%`;
      cell.replaceChildren(bar);
    }
    line.append(cell);
  });
  return line;
};
// A table as text: every row as it is written here.
const latexText = (text) => [...text].map((c) => data.latex[c] ?? c).join("");
const csvText = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
const shownColumns = (table) => table.columns.map((column, i) => i).filter((i) => !table.columns[i].bar);
const asCsv = (table) => {
  const kept = shownColumns(table);
  const rows = table.rows.filter((row) => row.style !== "section").map((row) => kept.map((i) => csvText(String(row.raw[i] ?? ""))).join(","));
  return [kept.map((i) => csvText(table.columns[i].key)).join(","), ...rows].join("\n") + "\n";
};
const asLatex = (table) => {
  const kept = shownColumns(table);
  const line = (cells) => `${cells.map(latexText).join(" & ")} \\\\`;
  const rows = table.rows.map((row) => (row.style === "section" ? `\\multicolumn{${kept.length}}{l}{\\emph{${latexText(row.text[0])}}} \\\\` : line(kept.map((i) => row.text[i]))));
  const layout = kept.map((i) => (table.columns[i].numeric ? "r" : "l")).join("");
  return [`% needs \\usepackage{booktabs}`, `\\begin{tabular}{${layout}}`, "\\toprule", line(kept.map((i) => table.columns[i].title)), "\\midrule", ...rows, "\\bottomrule", "\\end{tabular}"].join("\n") + "\n";
};
const copy = async (button, text) => {
  const old = button.textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = make("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  button.textContent = "copied";
  setTimeout(() => { button.textContent = old; }, 1200);
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
      th.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); sort(); } });
      head.append(th);
    });
    put(table.rows);
    const top = make("thead");
    top.append(head);
    grid.append(top, body);
    const scroll = make("div", "scroll");
    scroll.append(grid);
    const notes = make("div", "notes");
    notes.append(...table.notes.map((note) => sentence("p", note)));
    const tools = make("div", "tools");
    for (const [label, write] of [["LaTeX", asLatex], ["CSV", asCsv]]) {
      const button = tool(label, `Copy ${table.title} as ${label}`, () => copy(button, write(table)));
      tools.append(button);
    }
    box.append(scroll, notes, tools);
  };
  box.addEventListener("toggle", () => { if (box.open) fill(); });
  if (open) { box.open = true; fill(); }
  return box;
};
// Whether a table is open stays as it was, for the same table of another response as well.
const showTables = (place, tables, open = 0) => {
  const kind = (name) => name.split(" ")[0];
  const before = new Map([...place.children].map((box) => [kind(box.dataset.table), box.open]));
  place.replaceChildren(...tables.map((table, i) => showTable(table, before.get(kind(table.name)) ?? i < open)));
};
