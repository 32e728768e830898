/** Values that people wrote into the data of an execution. */
import type { JournalEvent, Json } from "@/api/views";
import { isObject, pathText, type ValuePath } from "@/values/changes";

export interface HandEdit {
  path: string;
  value: Json;
  by: string;
}

export function handEdits(events: readonly JournalEvent[]): HandEdit[] {
  return events
    .filter((event) => event.kind === "steered" && Array.isArray(event.edits))
    .flatMap((event) =>
      (event.edits as Json[]).map((edit) => {
        const [path, value] = isObject(edit) ? [edit.path, edit.value] : Array.isArray(edit) ? edit : [];
        return {
          path: pathText((Array.isArray(path) ? path : []) as unknown as ValuePath),
          value: value ?? null,
          by: String(event.by ?? ""),
        };
      }),
    );
}

/** A fork shares the edits of its origin: those are no difference. */
export function onlyIn(own: readonly HandEdit[], others: readonly HandEdit[]): HandEdit[] {
  const known = new Set(others.map((one) => JSON.stringify(one)));
  return own.filter((one) => !known.has(JSON.stringify(one)));
}
