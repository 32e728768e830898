/** A sticky note with Markdown, or a titled frame around nodes. The text is edited in place. */

import { type Node, type NodeProps, NodeResizer, NodeToolbar } from "@xyflow/react";
import { Pencil } from "lucide-react";
import { lazy, memo, Suspense, useContext, useEffect, useRef } from "react";
import { useTranslation } from "react-i18next";
import { IconButton } from "@/components/IconButton";
import { NOTE_COLORS, type Note } from "@/graph/model/picture";
import { MARKS, useMark } from "./changeMarks";
import { type NoteEditing, NoteEditingContext } from "./noteEditing";

const Markdown = lazy(() => import("@/components/Markdown"));

export type NoteNode = Node<{ note: Note }, "note">;

const NOTE_LENGTH_MIN = 40;
/** A frame is below all nodes; its tools are above them. */
const TOOLS_STYLE = { zIndex: 2000 } as const;

export const StickyNote = memo(function StickyNote({ id, data, selected }: NodeProps<NoteNode>) {
  const editing = useContext(NoteEditingContext);
  const mark = useMark("node", id);
  const { note } = data;
  const Look = note.isFrame ? FrameLook : NoteLook;
  return (
    <>
      {editing ? <NoteTools note={note} editing={editing} isSelected={selected} /> : null}
      <div
        data-note-color={note.color}
        className={`note size-full rounded-md border ${note.isFrame ? "note-frame" : "note-sticky"} ${mark ? MARKS[mark].edge : ""} ${selected ? "outline-2 outline-offset-2 outline-accent" : ""}`}
      >
        <Look note={note} editing={editing} />
      </div>
    </>
  );
});

interface LookProps {
  note: Note;
  editing: NoteEditing | null;
}

function NoteLook({ note, editing }: LookProps) {
  const { t } = useTranslation();
  if (editing?.edited === note.id) return <NoteText note={note} editing={editing} />;
  return (
    <div className="size-full overflow-hidden px-3 py-2 text-sm">
      {note.text ? (
        <Suspense fallback={note.text}>
          <Markdown text={note.text} />
        </Suspense>
      ) : (
        <p className="text-ink-soft italic">{t(editing ? "note.writeHint" : "note.empty")}</p>
      )}
    </div>
  );
}

/** Only the title takes the pointer, so that the nodes inside stay reachable. */
function FrameLook({ note, editing }: LookProps) {
  const { t } = useTranslation();
  return (
    <div className="note-title pointer-events-auto flex h-8 w-full cursor-grab items-center rounded-t-[5px] px-3 font-medium">
      {editing?.edited === note.id ? (
        <NoteText note={note} editing={editing} />
      ) : (
        <span className="min-w-0 truncate">{note.text || <i className="text-ink-soft">{t("note.untitled")}</i>}</span>
      )}
    </div>
  );
}

function NoteText({ note, editing }: { note: Note; editing: NoteEditing }) {
  const { t } = useTranslation();
  const field = useRef<HTMLTextAreaElement & HTMLInputElement>(null);
  useEffect(() => {
    field.current?.focus({ preventScroll: true });
    field.current?.select();
  }, []);
  const Box = note.isFrame ? "input" : "textarea";
  return (
    <Box
      ref={field}
      aria-keyshortcuts="Control+Enter"
      value={note.text}
      aria-label={t(note.isFrame ? "note.title" : "note.text")}
      onChange={(event: { target: { value: string } }) => editing.write(note.id, event.target.value)}
      onBlur={editing.end}
      onKeyDown={(event: { key: string; ctrlKey: boolean; metaKey: boolean; stopPropagation: () => void }) => {
        const isDone = event.key === "Enter" && (note.isFrame || event.ctrlKey || event.metaKey);
        if (event.key !== "Escape" && !isDone) return;
        event.stopPropagation();
        editing.end();
      }}
      className="nodrag nopan nowheel size-full resize-none rounded-md bg-transparent px-3 py-2 text-sm"
    />
  );
}

/** Colours, the pencil and the handles of the only selected note. */
function NoteTools({ note, editing, isSelected }: { note: Note; editing: NoteEditing; isSelected: boolean }) {
  const { t } = useTranslation();
  return (
    <>
      <NodeResizer
        isVisible={isSelected}
        minWidth={NOTE_LENGTH_MIN}
        minHeight={NOTE_LENGTH_MIN}
        onResizeEnd={(_, { x, y, width, height }) => editing.resize(note.id, { x, y, width, height })}
      />
      <NodeToolbar offset={14} style={TOOLS_STYLE}>
        <div
          role="toolbar"
          aria-label={t("note.tools", { name: note.name })}
          className="flex items-center gap-0.5 rounded-md border border-line bg-surface p-0.5 shadow-md"
        >
          <IconButton
            icon={Pencil}
            name={t(note.isFrame ? "note.editTitle" : "note.editText")}
            onClick={() => editing.edit(note.id)}
          />
          {NOTE_COLORS.map((color) => (
            <button
              key={color}
              type="button"
              aria-pressed={note.color === color}
              aria-label={t(`note.color.${color}`)}
              title={t(`note.color.${color}`)}
              onClick={() => editing.paint(note.id, color)}
              className="flex size-7 items-center justify-center rounded-md hover:bg-sunken aria-pressed:bg-sunken aria-pressed:outline-1 aria-pressed:outline-ink-soft"
            >
              <span data-note-color={color} className="note note-sticky size-4 rounded-full border" />
            </button>
          ))}
        </div>
      </NodeToolbar>
    </>
  );
}
