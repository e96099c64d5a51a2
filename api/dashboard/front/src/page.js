// On every page, before anything is drawn: the colours that the reader chose, so that no page flashes in the other ones.
const KEY = "zarrmill-theme";

function chosen() {
  try {
    return localStorage.getItem(KEY) ?? "auto";
  } catch {
    return "auto"; // storage is forbidden
  }
}

function apply(theme) {
  if (theme === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme;
  for (const button of document.querySelectorAll("[data-theme-choice]"))
    button.setAttribute("aria-pressed", String(button.dataset.themeChoice === theme));
}

apply(chosen());

document.addEventListener("DOMContentLoaded", () => {
  const group = document.querySelector(".theme");
  if (group) group.hidden = false;
  apply(chosen());
  group?.addEventListener("click", (event) => {
    const theme = event.target.closest("[data-theme-choice]")?.dataset.themeChoice;
    if (!theme) return;
    try {
      localStorage.setItem(KEY, theme);
    } catch {
      // it holds for this page
    }
    apply(theme);
  });
  // a form whose fields filter a list is sent as soon as a choice is made; its button stays for everybody else
  for (const form of document.querySelectorAll("form[data-send-on-change]"))
    form.addEventListener("change", (event) => event.target.matches("select") && form.requestSubmit());
});
