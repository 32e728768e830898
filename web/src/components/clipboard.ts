/** Puts a text into the clipboard; false where the browser does not let the page do that. */
export async function putInClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return putByCommand(text);
  }
}

/** As it was done before there was a way to ask: it works without TLS, and where the newer way is refused. */
function putByCommand(text: string): boolean {
  let isTaken = false;
  const take = (event: ClipboardEvent) => {
    event.clipboardData?.setData("text/plain", text);
    event.preventDefault();
    event.stopImmediatePropagation();
    isTaken = true;
  };
  window.addEventListener("copy", take, { capture: true });
  try {
    return document.execCommand("copy") && isTaken;
  } catch {
    return false;
  } finally {
    window.removeEventListener("copy", take, { capture: true });
  }
}
