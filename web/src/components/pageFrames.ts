/** What surrounds a page, by the first part of its address: the app's navigation, the header of pages that a link opens
 * for readers without an account, or nothing in a frame of another site. */
const FRAMES: Readonly<Record<string, "link" | "none">> = { answer: "link", form: "link", talk: "link", embed: "none" };

export function pageFrame(path: string): "app" | "link" | "none" {
  return FRAMES[path.split("/")[1] ?? ""] ?? "app";
}
