// On a dataset's page: what moves is told by the server and put in place of what stood there. The server escaped it.
const region = document.querySelector(".live[data-events]");
const word = document.querySelector(".live-word");

function say(text) {
  if (!word || word.textContent === text) return;
  word.hidden = false;
  word.textContent = text;
}

// Whoever stands on a link with the keyboard stands on it afterwards.
function put(html) {
  const held = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const scrolled = region.querySelector(".scroll")?.scrollLeft ?? 0;
  region.innerHTML = html;
  if (region.querySelector(".scroll")) region.querySelector(".scroll").scrollLeft = scrolled;
  if (held) [...region.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus();
}

if (region && "EventSource" in window) {
  const source = new EventSource(region.dataset.events);
  source.addEventListener("open", () => say("These numbers follow by themselves."));
  source.addEventListener("progress", (event) => put(JSON.parse(event.data).html));
  source.addEventListener("end", () => {
    source.close();
    say("Nothing moves any more. The rest of this page is as it was when it was loaded: ");
    const again = document.createElement("a");
    again.href = location.pathname + location.search;
    again.textContent = "load it anew";
    word.append(again);
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) say("These numbers do not follow any more; load the page anew.");
    else say("The server does not answer just now, so these numbers stand still. They follow again when it does.");
  });
}
