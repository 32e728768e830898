/** What the editor offers to notes and frames of its canvas; null where the picture is read-only. */
import { createContext } from "react";
import type { Rect } from "@/graph/layout/geometry";
import type { NoteColor } from "@/graph/model/picture";

export interface NoteEditing {
  /** The note whose text is being edited. */
  edited: string | null;
  edit: (id: string) => void;
  /** Ends editing; the note receives the focus. */
  end: () => void;
  write: (id: string, text: string) => void;
  paint: (id: string, color: NoteColor) => void;
  resize: (id: string, to: Rect) => void;
}

export const NoteEditingContext = createContext<NoteEditing | null>(null);
