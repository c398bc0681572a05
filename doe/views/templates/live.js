// Served pages only: shows the runs under way, and loads the page again when the study has moved on.
let current = null;
const running = document.createElement("pre");
running.id = "running";
running.className = "scroll";
document.querySelector("header.top").append(running);
const get = async (name) => {
  const answer = await fetch(name, { cache: "no-store" });
  return answer.ok ? answer.text() : null;
};
const ask = async () => {
  try {
    const now = await get("state");
    if (current !== null && now !== null && now !== current) location.reload();
    if (now !== null) current = now;
    running.textContent = (await get("running")) ?? "";
    running.hidden = !running.textContent;
  } catch { /* the server has ended; the page stays as it is */ }
};
ask();
setInterval(ask, 3000);
