/** The hub in the worker that all windows share, and the doubt whether it still lives: one that is silent tells nobody. */
import { uniqueId } from "@/uniqueId";
import type { FromHub, ToHub } from "./hub";

export type ToWorker = ToHub | { kind: "lock"; name: string } | { kind: "ask" };
export type FromWorker = FromHub | { kind: "alive" };

const ASKS_EVERY_MS = 15_000;
const ANSWERS_WITHIN_MS = 5_000;
/** A window that was asleep may find its own patience at an end before it has looked at the answer. */
const CHANCES = 2;

export class SharedHub {
  private readonly port: MessagePort;
  private readonly asking: ReturnType<typeof setInterval>;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private isLost = false;

  /** Throws where this browser has no such workers, or lets this page have none. `lose`: it is not to be heard any more. */
  constructor(
    private readonly hear: (message: FromHub) => void,
    private readonly lose: () => void,
  ) {
    const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "pointsman" });
    worker.onerror = () => this.giveUp();
    this.port = worker.port;
    this.port.onmessage = (heard: MessageEvent<FromWorker>) => this.take(heard.data);
    if (navigator.locks) {
      const name = `pointsman-window-${uniqueId()}`;
      void navigator.locks
        .request(name, () => {
          this.say({ kind: "lock", name });
          return new Promise(() => undefined);
        })
        .catch(() => undefined); // Without a lock the worker learns of windows that close, not of those that crash.
    }
    this.asking = setInterval(() => document.visibilityState === "visible" && this.doubt(), ASKS_EVERY_MS);
    this.doubt();
  }

  say(message: ToWorker): void {
    this.port.postMessage(message);
  }

  /** Ask whether it is there. */
  doubt(chances = CHANCES): void {
    if (this.isLost || this.timer !== null) return;
    this.say({ kind: "ask" });
    this.timer = setTimeout(() => {
      this.timer = null;
      if (chances > 1) this.doubt(chances - 1);
      else this.giveUp();
    }, ANSWERS_WITHIN_MS);
  }

  private take(message: FromWorker): void {
    if (this.isLost) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (message.kind !== "alive") this.hear(message);
  }

  private giveUp(): void {
    if (this.isLost) return;
    this.isLost = true;
    clearInterval(this.asking);
    if (this.timer !== null) clearTimeout(this.timer);
    this.say({ kind: "leave" });
    this.port.close();
    this.lose();
  }
}
