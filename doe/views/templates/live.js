// Served pages only: asks whether the study has moved on, and loads the page again if it has.
let current = null;
const ask = async () => {
  try {
    const answer = await fetch("state", { cache: "no-store" });
    const now = await answer.text();
    if (current !== null && answer.ok && now !== current) location.reload();
    if (answer.ok) current = now;
  } catch { /* the server has ended; the page stays as it is */ }
};
ask();
setInterval(ask, 3000);
