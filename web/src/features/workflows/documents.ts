/** Documents to import: each is checked and saved unchanged. */
import { apiRequest, type Problem } from "@/api/http";
import { saveNew } from "@/api/queries";

export const BYTES_MAX = 5_000_000;

export interface Checked {
  ok: boolean;
  /** The id under which it would be saved; null if it cannot be parsed. */
  id: string | null;
  /** The latest revision of that id; saving creates the next one. */
  revision: number | null;
  dialect: string | null;
  problems: Problem[];
}

/** One of several files, with its progress. */
export interface Document {
  name: string;
  text: string;
  checked: Checked | null;
  /** The revision it was saved as. */
  saved: { id: string; revision: number } | null;
  failed: Error | null;
}

export const check = (document: string) => apiRequest<Checked>("/api/workflows/check", { body: { document } });

export async function readDocument(file: File): Promise<Document> {
  const begun: Document = { name: file.name, text: "", checked: null, saved: null, failed: null };
  try {
    if (file.size > BYTES_MAX) throw new Error(`${file.name}: ${file.size} > ${BYTES_MAX} bytes`);
    const text = await file.text();
    return { ...begun, text, checked: await check(text) };
  } catch (why) {
    return { ...begun, failed: asError(why) };
  }
}

/** Save a document; one with errors is saved as a draft, which cannot run. */
export async function saveDocument(document: Document): Promise<Document> {
  try {
    return { ...document, saved: await saveNew(document.text, document.checked?.ok === false), failed: null };
  } catch (why) {
    return { ...document, failed: asError(why) };
  }
}

/** Return whether the document can be saved now. A document without an id cannot. */
export const canSave = (one: Document, withDrafts: boolean) =>
  one.saved === null && one.checked !== null && (one.checked.ok || (withDrafts && one.checked.id !== null));

/** Ids that several documents have; the last document becomes the latest revision. */
export function sharedIds(documents: readonly Document[]): string[] {
  const ids = documents.flatMap((one) => (one.checked?.id ? [one.checked.id] : []));
  return [...new Set(ids.filter((id, at) => ids.indexOf(id) !== at))];
}

function asError(why: unknown): Error {
  return why instanceof Error ? why : new Error(String(why));
}
