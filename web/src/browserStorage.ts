/** Storage of the browser. Values that the browser refuses to store, or has no room for, are kept in memory until the
 * page is left. */
export class BrowserStorage {
  private readonly held = new Map<string, string | null>();

  /** `open` may throw: a browser can refuse access to its storage. */
  constructor(private readonly open: () => Storage) {}

  read(key: string): string | null {
    const held = this.held.get(key);
    if (held !== undefined) return held;
    try {
      return this.open().getItem(key);
    } catch {
      return null;
    }
  }

  /** Store a text, or delete it with null. Returns false if the value is in memory only. */
  write(key: string, text: string | null): boolean {
    try {
      if (text === null) this.open().removeItem(key);
      else this.open().setItem(key, text);
      this.held.delete(key);
    } catch {
      this.held.set(key, text);
    }
    return this.lasts(key);
  }

  /** Return whether the value survives the page. */
  lasts(key: string): boolean {
    return (this.held.get(key) ?? null) === null;
  }
}

/** For all windows, permanently. */
export const browserStorage = new BrowserStorage(() => localStorage);
/** For this window only, until it is closed. */
export const windowStorage = new BrowserStorage(() => sessionStorage);
