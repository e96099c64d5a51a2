// While a run is under way, its numbers are fetched anew every 15 seconds; the rest of the page stays as it was opened, and says so.
// Once the run has ended the page is loaded anew: it holds no form that could be lost, and then follows nothing.
const EVERY_MS = 15_000;

async function refresh() {
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (!page.querySelector(".follows")) {
    location.reload();
    return;
  }
  for (const old of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(old.id);
    if (fresh && fresh.innerHTML !== old.innerHTML) old.replaceWith(document.importNode(fresh, true));
  }
}

setInterval(() => refresh().catch(() => {}), EVERY_MS);
