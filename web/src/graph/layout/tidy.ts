/** A tidy layout, in a worker of its own: however large the picture is, the page goes on. */

import type { Picture } from "@/graph/model/picture";
import type { Point } from "./geometry";

export interface Tidying {
  picture: Picture;
  stands: ReadonlyMap<string, Point>;
}

export type Positions = ReadonlyMap<string, Point>;

/** Where each box goes, laid out anew; what stands above another stays there where that costs no crossing. */
export async function tidyLayout(picture: Picture, stands: Positions): Promise<Positions> {
  const worker = new Worker(new URL("./tidy.worker.ts", import.meta.url), { type: "module" });
  try {
    return await new Promise<Positions>((give, fail) => {
      worker.onmessage = ({ data }: MessageEvent<Positions>) => give(data);
      worker.onerror = (why) => fail(new Error(why.message));
      worker.postMessage({ picture, stands } satisfies Tidying);
    });
  } finally {
    worker.terminate();
  }
}
