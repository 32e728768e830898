/** Copy a text to the clipboard; false if the browser refuses. */
export async function copyToClipboard(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyByCommand(text);
  }
}

/** Use the older `copy` command. It works without TLS, and where the clipboard API is refused. */
function copyByCommand(text: string): boolean {
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
