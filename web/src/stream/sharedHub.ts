/** The hub in the worker that all windows share. Detects a worker that no longer responds. */
import { uniqueId } from "@/uniqueId";
import type { FromHub, ToHub } from "./hub";

export type ToWorker = ToHub | { kind: "lock"; name: string } | { kind: "ask" };
export type FromWorker = FromHub | { kind: "alive" };

const ASKS_EVERY_MS = 15_000;
const ANSWERS_WITHIN_MS = 5_000;
/** After sleep the timer can expire before the answer is processed, so ask more than once. */
const CHANCES = 2;

export class SharedHub {
  private readonly port: MessagePort;
  private readonly asking: ReturnType<typeof setInterval>;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private isLost = false;

  /** Throws if the browser does not support shared workers or refuses to start one. `lose` is called when the worker
   * stops responding. */
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
        .catch(() => undefined); // Without locks the worker notices closed windows, but not crashed ones.
    }
    this.asking = setInterval(() => document.visibilityState === "visible" && this.doubt(), ASKS_EVERY_MS);
    this.doubt();
  }

  say(message: ToWorker): void {
    this.port.postMessage(message);
  }

  /** Check that the worker responds. */
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
