/** Return a random id. Works without TLS too, where browsers offer no `crypto.randomUUID`. */
export function uniqueId(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
}
