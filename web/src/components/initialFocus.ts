/** Where somebody begins in a dialog: in its first field, also one that comes later, else at the way out of it. */

const FIELDS =
  "input:not([type=hidden], [type=file], :disabled), select:enabled, textarea:enabled, [contenteditable=true]";
/** Without a field: what is handed in as it is. What cannot be taken back is no such thing: there it is the way out. */
const DEED = "button[type=submit]:enabled";
/** More is to come. */
const COMING = "[data-loading]";
const WAY_OUT = "[data-way-out]";

/** Until something in it has the focus. What is given back ends the waiting. */
export function focusFirstField(dialog: HTMLElement): () => void {
  dialog.focus();
  if (begun(dialog)) return () => undefined;
  const watch = new MutationObserver(() => {
    if (document.activeElement !== dialog || begun(dialog)) watch.disconnect();
  });
  watch.observe(dialog, { childList: true, subtree: true });
  return () => watch.disconnect();
}

function begun(dialog: HTMLElement): boolean {
  const field = firstField(dialog);
  if (field === null && dialog.querySelector(COMING)) return false;
  const start = field ?? dialog.querySelector<HTMLElement>(DEED) ?? dialog.querySelector<HTMLElement>(WAY_OUT);
  start?.focus();
  return start !== null;
}

/** Of several to choose from the one that is chosen. */
function firstField(dialog: HTMLElement): HTMLElement | null {
  const first = dialog.querySelector<HTMLElement>(FIELDS);
  if (!(first instanceof HTMLInputElement) || first.type !== "radio") return first;
  return (
    [...dialog.querySelectorAll<HTMLInputElement>("input[type=radio]:checked")].find(
      (one) => one.name === first.name,
    ) ?? first
  );
}
