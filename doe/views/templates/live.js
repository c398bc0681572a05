"use strict";
// Served pages only: shows the runs under way, and loads the page again when the study has moved on.
(() => {
  let seen = null;
  const box = document.createElement("pre");
  box.id = "running";
  box.className = "scroll";
  document.querySelector("header.top").append(box);
  const get = async (name) => {
    const answer = await fetch(name, { cache: "no-store" });
    return answer.ok ? answer.text() : null;
  };
  const ask = async () => {
    try {
      const now = await get("state");
      if (seen !== null && now !== null && now !== seen) location.reload();
      if (now !== null) seen = now;
      box.textContent = (await get("running")) ?? "";
      box.hidden = !box.textContent;
    } catch { /* the server has ended; the page stays as it is */ }
  };
  ask();
  setInterval(ask, 3000);
})();
