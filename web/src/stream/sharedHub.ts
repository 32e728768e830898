/** The hub in the worker that all windows share. Detects a worker that no longer responds. */
import { uniqueId } from "@/uniqueId";
import type { FromHub, ToHub } from "./hub";

export type ToWorker = ToHub | { kind: "lock"; name: string } | { kind: "ask" };
export type FromWorker = FromHub | { kind: "alive" };

const PROBE_INTERVAL_MS = 15_000;
const PROBE_TIMEOUT_MS = 5_000;
/** After sleep the timer can expire before the answer is processed, so ask more than once. */
const PROBES_MAX = 2;

export class SharedHub {
  private readonly port: MessagePort;
  private readonly probing: ReturnType<typeof setInterval>;
  private timer: ReturnType<typeof setTimeout> | null = null;
  private isLost = false;

  /** Throws if the browser does not support shared workers or refuses to start one. `onLost` is called when the worker
   * stops responding. */
  constructor(
    private readonly onMessage: (message: FromHub) => void,
    private readonly onLost: () => void,
  ) {
    const worker = new SharedWorker(new URL("./worker.ts", import.meta.url), { type: "module", name: "pointsman" });
    worker.onerror = () => this.giveUp();
    this.port = worker.port;
    this.port.onmessage = (message: MessageEvent<FromWorker>) => this.receive(message.data);
    if (navigator.locks) {
      const name = `pointsman-window-${uniqueId()}`;
      void navigator.locks
        .request(name, () => {
          this.send({ kind: "lock", name });
          return new Promise(() => undefined);
        })
        .catch(() => undefined); // Without locks the worker notices closed windows, but not crashed ones.
    }
    this.probing = setInterval(() => document.visibilityState === "visible" && this.probe(), PROBE_INTERVAL_MS);
    this.probe();
  }

  send(message: ToWorker): void {
    this.port.postMessage(message);
  }

  /** Check that the worker responds. */
  probe(probesLeft = PROBES_MAX): void {
    if (this.isLost || this.timer !== null) return;
    this.send({ kind: "ask" });
    this.timer = setTimeout(() => {
      this.timer = null;
      if (probesLeft > 1) this.probe(probesLeft - 1);
      else this.giveUp();
    }, PROBE_TIMEOUT_MS);
  }

  private receive(message: FromWorker): void {
    if (this.isLost) return;
    if (this.timer !== null) clearTimeout(this.timer);
    this.timer = null;
    if (message.kind !== "alive") this.onMessage(message);
  }

  private giveUp(): void {
    if (this.isLost) return;
    this.isLost = true;
    clearInterval(this.probing);
    if (this.timer !== null) clearTimeout(this.timer);
    this.send({ kind: "leave" });
    this.port.close();
    this.onLost();
  }
}
