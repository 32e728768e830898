/** Lays out beside the page. */
import { settled } from "./quickLayout";
import type { Tidying } from "./tidy";

self.onmessage = ({ data }: MessageEvent<Tidying>) => self.postMessage(settled(data.picture, data.stands));
