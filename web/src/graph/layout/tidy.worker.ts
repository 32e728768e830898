/** Lays out beside the page. */
import { settledLayout } from "./quickLayout";
import type { Tidying } from "./tidy";

self.onmessage = ({ data }: MessageEvent<Tidying>) => self.postMessage(settledLayout(data.picture, data.stands));
