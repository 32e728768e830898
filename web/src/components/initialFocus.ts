/** The initial focus of a dialog: its first field, even if it appears later, otherwise a button. */

const FIELDS =
  "input:not([type=hidden], [type=file], :disabled), select:enabled, textarea:enabled, [contenteditable=true]";
/** Without a field: the submit button. Dangerous actions are not submit buttons, so there the closing button gets the
 * focus. */
const SUBMIT_BUTTON = "button[type=submit]:enabled";
/** Marks content that is still loading. */
const LOADING_MARK = "[data-loading]";
const CLOSE_BUTTON = "[data-way-out]";

/** Focus the dialog, then its first field as soon as there is one. The returned function stops the waiting. */
export function focusFirstField(dialog: HTMLElement): () => void {
  dialog.focus();
  if (setInitialFocus(dialog)) return () => undefined;
  const watch = new MutationObserver(() => {
    if (document.activeElement !== dialog || setInitialFocus(dialog)) watch.disconnect();
  });
  watch.observe(dialog, { childList: true, subtree: true });
  return () => watch.disconnect();
}

function setInitialFocus(dialog: HTMLElement): boolean {
  const field = firstField(dialog);
  if (field === null && dialog.querySelector(LOADING_MARK)) return false;
  const start =
    field ?? dialog.querySelector<HTMLElement>(SUBMIT_BUTTON) ?? dialog.querySelector<HTMLElement>(CLOSE_BUTTON);
  start?.focus();
  return start !== null;
}

/** In a group of radio buttons: the checked one. */
function firstField(dialog: HTMLElement): HTMLElement | null {
  const first = dialog.querySelector<HTMLElement>(FIELDS);
  if (!(first instanceof HTMLInputElement) || first.type !== "radio") return first;
  return (
    [...dialog.querySelectorAll<HTMLInputElement>("input[type=radio]:checked")].find(
      (one) => one.name === first.name,
    ) ?? first
  );
}
