/** Compute the layout in a worker. */
import { settledLayout } from "./quickLayout";
import type { TidyRequest } from "./tidy";

self.onmessage = ({ data }: MessageEvent<TidyRequest>) => self.postMessage(settledLayout(data.picture, data.options));
