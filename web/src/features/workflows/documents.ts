/** Documents to be imported: each is checked, and saved as it is. */
import { apiRequest, type Problem } from "@/api/http";
import { saveNew } from "@/api/queries";

export const BYTES_MAX = 5_000_000;

export interface Checked {
  ok: boolean;
  /** As which it would be saved; null: it cannot be read. */
  id: string | null;
  /** The latest of that id: saving makes the next. */
  revision: number | null;
  dialect: string | null;
  problems: Problem[];
}

/** One of several files, as far as it has come. */
export interface Document {
  name: string;
  text: string;
  checked: Checked | null;
  /** As which it was saved. */
  saved: { id: string; revision: number } | null;
  failed: Error | null;
}

export const check = (document: string) => apiRequest<Checked>("/api/workflows/check", { body: { document } });

export async function readAndChecked(file: File): Promise<Document> {
  const begun: Document = { name: file.name, text: "", checked: null, saved: null, failed: null };
  try {
    if (file.size > BYTES_MAX) throw new Error(`${file.name}: ${file.size} > ${BYTES_MAX} bytes`);
    const text = await file.text();
    return { ...begun, text, checked: await check(text) };
  } catch (why) {
    return { ...begun, failed: asError(why) };
  }
}

/** With errors it is saved as a draft, which cannot be run. */
export async function savedOf(document: Document): Promise<Document> {
  try {
    return { ...document, saved: await saveNew(document.text, document.checked?.ok === false), failed: null };
  } catch (why) {
    return { ...document, failed: asError(why) };
  }
}

/** Those that saving makes sense of: what cannot be read has no id. */
export const canSave = (one: Document, withDrafts: boolean) =>
  one.saved === null && one.checked !== null && (one.checked.ok || (withDrafts && one.checked.id !== null));

/** Which ids several of them have: the last one becomes the latest revision. */
export function sharedIds(documents: readonly Document[]): string[] {
  const ids = documents.flatMap((one) => (one.checked?.id ? [one.checked.id] : []));
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))];
}

function asError(why: unknown): Error {
  return why instanceof Error ? why : new Error(String(why));
}
