/** Light, dark, or the system's theme. */
import { browserStorage } from "./browserStorage";

export type Theme = "system" | "light" | "dark";
const KEPT_AS = "pointsman.theme";

export function theme(): Theme {
  const kept = browserStorage.read(KEPT_AS);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function paint(wish: Theme): void {
  browserStorage.write(KEPT_AS, wish);
  if (wish === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = wish;
}
