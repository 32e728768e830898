/** The hub in a worker that all windows of the app share. */
import { Hub, type Viewer } from "./hub";
import type { FromWorker, ToWorker } from "./sharedHub";

declare const self: SharedWorkerGlobalScope;

const hub = new Hub();

self.onconnect = (connected) => {
  const port = connected.ports[0] as MessagePort;
  const viewer: Viewer = { post: (message) => port.postMessage(message) };
  port.onmessage = ({ data }: MessageEvent<ToWorker>) => {
    if (data.kind === "ask") return port.postMessage({ kind: "alive" } satisfies FromWorker);
    if (data.kind !== "lock") return hub.handle(viewer, data);
    // The window holds this lock while it lives. Once the worker gets it, the window is gone, even after a crash.
    void navigator.locks.request(data.name, () => hub.handle(viewer, { kind: "leave" }));
  };
};
