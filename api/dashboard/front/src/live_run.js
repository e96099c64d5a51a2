// While a run is under way, its numbers are fetched anew every 15 seconds; the rest of the page stays as it was opened.
const EVERY_MS = 15_000;

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  for (const old of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(old.id);
    if (fresh && fresh.innerHTML !== old.innerHTML) old.replaceWith(document.importNode(fresh, true));
  }
  const moment = page.querySelector(".as-of");
  if (moment) document.querySelector(".as-of").replaceWith(document.importNode(moment, true));
}

setInterval(() => refresh().catch(() => {}), EVERY_MS);
