/** Compute a tidy layout in a web worker, so that a large picture does not block the page. */

import type { Picture } from "@/graph/model/picture";
import type { Point } from "./geometry";

export interface TidyRequest {
  picture: Picture;
  currentPositions: ReadonlyMap<string, Point>;
}

export type Positions = ReadonlyMap<string, Point>;

/** New positions of all boxes. The vertical order of boxes is preserved where that adds no crossing. */
export async function tidyLayout(picture: Picture, stands: Positions): Promise<Positions> {
  const worker = new Worker(new URL("./tidy.worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise<Positions>((give, fail) => {
      worker.onmessage = ({ data }: MessageEvent<Positions>) => give(data);
      worker.onerror = (why) => fail(new Error(why.message));
      worker.postMessage({ picture, currentPositions: stands } satisfies TidyRequest);
    });
  } finally {
    worker.terminate();
  }
}
