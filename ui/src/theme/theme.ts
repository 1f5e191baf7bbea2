// Light or dark: what the system has, unless the viewer chose.
export type Theme = "light" | "dark" | "system";

const KEY = "servo-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

export function chosenTheme(): Theme {
  const kept = localStorage.getItem(KEY);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(): void {
  const chosen = chosenTheme();
  document.documentElement.dataset["theme"] = chosen === "system" ? (system.matches ? "dark" : "light") : chosen;
  window.dispatchEvent(new Event("servo-theme"));
}

export function chooseTheme(theme: Theme): void {
  if (theme === "system") localStorage.removeItem(KEY);
  else localStorage.setItem(KEY, theme);
  applyTheme();
}

export function toggleTheme(): void {
  chooseTheme(document.documentElement.dataset["theme"] === "dark" ? "light" : "dark");
}

system.addEventListener("change", applyTheme);
