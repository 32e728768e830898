/** A name that nothing else has: also where the app is reached without TLS, and the browser offers none. */
export function uniqueId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
}
