// On a dataset's page: what moves is told by the server and put in place of what stood there. The server escaped it.
const region = document.querySelector(".live[data-events]");
const word = document.querySelector(".live-word");

function say(text) {
  if (word && word.textContent !== text) word.textContent = text;
}

// Whoever stands on a link with the keyboard stands on it afterwards.
function put(html) {
  const held = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  const scrolled = region.querySelector(".scroll")?.scrollLeft ?? 0;
  region.innerHTML = html;
  if (region.querySelector(".scroll")) region.querySelector(".scroll").scrollLeft = scrolled;
  if (held) [...region.querySelectorAll("a")].find((link) => link.getAttribute("href") === held)?.focus();
}

// Whoever is about to send a form would lose what is in it.
function isBeingFilledIn() {
  return [...document.querySelectorAll("main input:not([type=hidden]), main select, main textarea")].some((field) =>
    field.matches("select") ? [...field.options].some((one, nth) => one.selected !== (one.defaultSelected || (nth === 0 && !field.querySelector("[selected]"))))
      : field.value !== field.defaultValue);
}

if (region && "EventSource" in window) {
  const source = new EventSource(region.dataset.events);
  source.addEventListener("open", () => say("These numbers follow by themselves."));
  source.addEventListener("progress", (event) => put(JSON.parse(event.data).html));
  source.addEventListener("end", () => {
    source.close();
    // the page that comes follows nothing, unless something else has begun by then
    if (isBeingFilledIn()) say("Nothing moves any more.");
    else location.reload();
  });
  source.addEventListener("error", () => {
    if (source.readyState === EventSource.CLOSED) say("These numbers do not follow any more; load the page anew.");
    else say("The server does not answer just now, so these numbers stand still. They follow again when it does.");
  });
}
