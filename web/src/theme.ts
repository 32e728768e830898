/** Light, dark, or the system's theme. */
import { browserStorage } from "./browserStorage";

export type Theme = "system" | "light" | "dark";
const STORAGE_KEY = "pointsman.theme";

export function theme(): Theme {
  const stored = browserStorage.read(STORAGE_KEY);
  return stored === "light" || stored === "dark" ? stored : "system";
}

export function applyTheme(choice: Theme): void {
  browserStorage.write(STORAGE_KEY, choice);
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}
