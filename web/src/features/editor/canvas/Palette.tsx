import { Toolbar } from "radix-ui";
import { type KeyboardEvent, memo, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Choice } from "@/components/Chooser";
import { useStableHandlers } from "@/components/useStableHandlers";
import { nextWithPrefix, useTypeAhead } from "@/components/useTypeAhead";
import { predecessorOf } from "../document/edits";
import { useEditor } from "../editorContext";
import { DRAGGED } from "./EditorCanvas";
import { type PaletteGroup, usePaletteGroups } from "./usePaletteGroups";

const LETTER = /^[\p{L}\p{N}]$/u;

/**
 * What can be added, in groups: a click adds behind the selected node, dragging adds at a position. The list is one tab
 * stop. The search also finds tools, agents and saved workflows.
 */
export function Palette() {
  const { store, node, canvas } = useEditor();
  const { put } = useStableHandlers({
    put: (type: string) => canvas.drawing().add({ type, after: predecessorOf(store.getState().shown, node?.id) }),
  });
  return <PaletteList onPut={put} />;
}

/** Does not render again with each change of the draft. */
const PaletteList = memo(function PaletteList({ onPut: put }: { onPut: (type: string) => void }) {
  const { t } = useTranslation();
  const bar = useRef<HTMLDivElement>(null);
  const typed = useTypeAhead();
  const [text, setText] = useState("");
  const groups = usePaletteGroups(text.trim());
  const buttons = () => [...(bar.current?.querySelectorAll("button") ?? [])];
  const pressInSearch = (event: KeyboardEvent) => {
    const [first] = groups;
    if (event.key === "ArrowDown") buttons()[0]?.focus();
    else if (event.key === "Enter" && text.trim() && first?.choices[0]) put(first.choices[0].id);
    else if (event.key === "Escape" && text) setText("");
    else return;
    event.preventDefault();
  };
  const find = (event: KeyboardEvent) => {
    if (!LETTER.test(event.key) || event.ctrlKey || event.metaKey || event.altKey) return;
    const names = buttons();
    const at = names.findIndex((one) => one.matches(":focus"));
    nextWithPrefix(names, at, typed.add(event.key.toLowerCase()), (one) => one.textContent.trim())?.focus();
    event.preventDefault();
  };
  return (
    <div className="flex w-48 shrink-0 flex-col border-r border-line bg-surface max-md:hidden">
      <div className="p-2 pb-1">
        <input
          type="search"
          value={text}
          onChange={(event) => setText(event.target.value)}
          onKeyDown={pressInSearch}
          aria-label={t("editor.paletteSearch")}
          placeholder={t("editor.paletteSearch")}
          className="h-8 w-full rounded-md border border-line-strong bg-surface px-2"
        />
      </div>
      <Toolbar.Root
        ref={bar}
        orientation="vertical"
        aria-label={t("editor.palette")}
        onKeyDown={find}
        className="min-h-0 flex-1 overflow-auto p-2 pt-0"
      >
        {groups.map((group) => (
          <Group key={group.name} group={group} onPut={put} />
        ))}
      </Toolbar.Root>
      <p role="status" className={groups.length === 0 ? "p-3 text-ink-soft" : "sr-only"}>
        {text.trim()
          ? groups.length === 0
            ? t("chooser.none", { words: text.trim() })
            : t("chooser.found", { count: groups.reduce((sum, one) => sum + one.choices.length, 0) })
          : ""}
      </p>
    </div>
  );
});

function Group({ group, onPut }: { group: PaletteGroup; onPut: (choice: string) => void }) {
  const heading = useId();
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset would be a group of form fields
    <div role="group" aria-labelledby={heading} className="mb-1.5">
      <h2 id={heading} className="px-2 pt-1 pb-0.5 text-xs text-ink-faint">
        {group.label}
      </h2>
      {group.choices.map((one) => (
        <Entry key={one.id} choice={one} onPut={onPut} />
      ))}
    </div>
  );
}

function Entry({ choice, onPut }: { choice: Choice; onPut: (choice: string) => void }) {
  return (
    <Toolbar.Button
      title={choice.about}
      draggable
      onDragStart={(event) => event.dataTransfer.setData(DRAGGED, choice.id)}
      onClick={() => onPut(choice.id)}
      className="flex min-h-7 w-full items-center gap-2 rounded-md px-2 text-left text-ink-soft hover:bg-sunken hover:text-ink"
    >
      {choice.icon ? <choice.icon className="size-4 shrink-0" aria-hidden /> : null}
      <span className="min-w-0 truncate">{choice.name}</span>
    </Toolbar.Button>
  );
}
