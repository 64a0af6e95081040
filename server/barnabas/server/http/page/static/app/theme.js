// Light or dark: the system decides until a button is pressed.
import { say } from "./dom.js";

const dark = matchMedia("(prefers-color-scheme: dark)");

function now() {
  return document.documentElement.dataset.theme ?? (dark.matches ? "dark" : "light");
}

/** Makes a button change the theme. */
export function themeButton(button) {
  const label = () => {
    const other = now() === "dark" ? "light" : "dark";
    button.textContent = other === "dark" ? "Dark" : "Light";
    button.setAttribute("aria-label", `Change to the ${other} theme`);
  };
  button.addEventListener("click", () => {
    const chosen = now() === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = chosen;
    try {
      localStorage.setItem("theme", chosen);
    } catch {
      // It holds until the page is closed.
    }
    label();
    say(`The ${chosen} theme is on`);
  });
  dark.addEventListener("change", label);
  label();
}
