/** What this browser keeps for the app. What it refuses to keep, or has no room for, is known until the page is left. */
export class BrowserStorage {
  private readonly held = new Map<string, string | null>();

  /** `open`: a browser may refuse even to say what it keeps. */
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

  /** Null: nothing any more. False where it is gone with the page. */
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

  /** Whether what is known by this name outlives the page. */
  lasts(key: string): boolean {
    return (this.held.get(key) ?? null) === null;
  }
}

/** For all windows, for good. */
export const browserStorage = new BrowserStorage(() => localStorage);
/** For this window alone, as long as it is there. */
export const windowStorage = new BrowserStorage(() => sessionStorage);
