// Buttons that copy a text which stands on the page.
for (const button of document.querySelectorAll("button[data-copy]")) {
  if (!navigator.clipboard) break; // only where the page came over https or from this machine
  button.hidden = false;
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Not copied";
    }
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
}
