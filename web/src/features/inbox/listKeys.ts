/** Keyboard shortcuts in a list of gates. */

/** The pressed key; empty if a modifier is held or the focus is in an input. */
export function keyPressed(event: KeyboardEvent): string {
  const at = event.target as HTMLElement | null;
  const isWritten = at?.closest?.("input, textarea, select, [contenteditable=true], [role=dialog], [role=menu]");
  return event.ctrlKey || event.metaKey || event.altKey || event.repeat || isWritten ? "" : event.key.toLowerCase();
}

/** The next or previous entry; at the end of the list, the neighbour on the other side. */
export function nextOf(gates: readonly { cursor: string }[], cursor: string | null, by: 1 | -1): string | null {
  const at = gates.findIndex((one) => one.cursor === cursor);
  return (gates[at + by] ?? gates[at - by] ?? gates[at])?.cursor ?? null;
}

/** A shortcut for each action: the first free letter of its name, otherwise its number. */
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
