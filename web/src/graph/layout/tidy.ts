/** Compute a tidy layout in a web worker, so that a large picture does not block the page. */

import type { Picture } from "@/graph/model/picture";
import type { Point } from "./geometry";
import type { LayoutOptions } from "./quickLayout";

export interface TidyRequest {
  picture: Picture;
  options: LayoutOptions;
}

export type Positions = ReadonlyMap<string, Point>;

/** New positions of all boxes. */
export async function tidyLayout(picture: Picture, options: LayoutOptions): Promise<Positions> {
  const worker = new Worker(new URL("./tidy.worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise<Positions>((give, fail) => {
      worker.onmessage = ({ data }: MessageEvent<Positions>) => give(data);
      worker.onerror = (why) => fail(new Error(why.message));
      worker.postMessage({ picture, options } satisfies TidyRequest);
    });
  } finally {
    worker.terminate();
  }
}
