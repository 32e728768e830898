/** By keys through a list of questions. */

/** A key without others held, outside of fields that are written in; empty where it is none. */
export function keyPressed(event: KeyboardEvent): string {
  const at = event.target as HTMLElement | null;
  const isWritten = at?.closest?.("input, textarea, select, [contenteditable=true], [role=dialog], [role=menu]");
  return event.ctrlKey || event.metaKey || event.altKey || event.repeat || isWritten ? "" : event.key.toLowerCase();
}

/** The one behind or before; at an end the one there is. */
export function nextOf(gates: readonly { cursor: string }[], cursor: string | null, by: 1 | -1): string | null {
  const at = gates.findIndex((one) => one.cursor === cursor);
  return (gates[at + by] ?? gates[at - by] ?? gates[at])?.cursor ?? null;
}

/** One key for each way to answer: the first free letter of it, else its number. */
export function keysFor(actions: readonly string[]): Map<string, string> {
  const taken = new Set(["j", "k"]);
  const found = new Map<string, string>();
  actions.forEach((action, at) => {
    const key = [...action.toLowerCase()].find((one) => /[a-z]/.test(one) && !taken.has(one)) ?? String(at + 1);
    taken.add(key);
    found.set(key, action);
  });
  return found;
}
