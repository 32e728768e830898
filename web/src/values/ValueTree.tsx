/** A value as a tree with search, copyable paths, and marked changes. */
import { Check, ChevronDown, ChevronRight, Copy, CornerDownLeft } from "lucide-react";
import { type DragEvent, useMemo, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { copyToClipboard } from "@/components/clipboard";
import { brief, changesIn, pathText, valueAt } from "./changes";
import { DRAGGED_PATH, rowsOf } from "./tree";

/** Inserts the path of a value into a field; null while no field can receive it. */
export type InsertPath = { name: string; insert: (path: string) => void } | null;

export function ValueTree(props: {
  value: Json;
  before?: Json | undefined;
  name: string;
  /** If given, rows can be dragged into fields, and inserted by a button. */
  into?: InsertPath;
}) {
  const { t } = useTranslation();
  const { value, before } = props;
  const [searchText, setSearchText] = useState("");
  const [toggled, setToggled] = useState<ReadonlyMap<string, boolean>>(new Map());
  const [copied, setCopied] = useState("");
  const changed = useMemo(
    () => (before === undefined ? new Set<string>() : changedPaths(before, value)),
    [before, value],
  );
  const { rows, isCut } = useMemo(
    () => rowsOf(value, (text, depth) => toggled.get(text) ?? (depth === 0 || changed.has(text)), searchText),
    [value, toggled, searchText, changed],
  );
  return (
    <div>
      <input
        type="search"
        value={searchText}
        onChange={(event) => setSearchText(event.target.value)}
        placeholder={t("tree.search")}
        aria-label={t("tree.searchIn", { name: props.name })}
        className="mb-1 h-8 w-full rounded-md border border-line-strong bg-surface px-2"
      />
      <ul className="text-xs" aria-label={props.name}>
        {rows.map((row) => {
          const isChanged = changed.has(row.text);
          const was = isChanged ? valueAt(before, row.path) : undefined;
          return (
            <li
              key={row.text}
              {...(props.into === undefined ? {} : { draggable: true, onDragStart: dragPath(row.text) })}
              style={{ paddingLeft: (row.path.length - 1) * 14 }}
              className={`group flex min-h-6 items-start gap-1 rounded px-1 ${isChanged ? "bg-waiting-soft" : "hover:bg-sunken"}`}
            >
              {row.isOpen === undefined ? (
                <span className="w-6 shrink-0" />
              ) : (
                <button
                  type="button"
                  aria-expanded={row.isOpen}
                  aria-label={row.text}
                  onClick={() => setToggled(new Map(toggled).set(row.text, !row.isOpen))}
                  className="flex size-6 shrink-0 items-center justify-center"
                >
                  {row.isOpen ? <ChevronDown className="size-3.5" /> : <ChevronRight className="size-3.5" />}
                </button>
              )}
              <span className="shrink-0 pt-1 font-mono text-ink-soft">{row.name}</span>
              <span className="min-w-0 flex-1 pt-1 break-words">
                {isChanged && was !== undefined && row.isOpen === undefined ? (
                  <del className="mr-1 text-ink-faint">{brief(was)}</del>
                ) : null}
                {row.isOpen === true ? null : brief(row.value, 300)}
                {isChanged ? <span className="sr-only"> {t("tree.changed")}</span> : null}
              </span>
              {props.into ? <InsertButton path={row.text} into={props.into} /> : null}
              <button
                type="button"
                aria-label={t("tree.copy", { path: row.text })}
                title={t("tree.copy", { path: row.text })}
                onClick={async () => setCopied((await copyToClipboard(row.text)) ? row.text : "")}
                className="flex size-6 shrink-0 items-center justify-center opacity-0 group-focus-within:opacity-100 group-hover:opacity-100"
              >
                {copied === row.text ? <Check className="size-3.5 text-done" /> : <Copy className="size-3.5" />}
              </button>
            </li>
          );
        })}
      </ul>
      {rows.length === 0 ? <p className="text-ink-faint">{searchText ? t("tree.notFound") : t("tree.empty")}</p> : null}
      {isCut ? <p className="text-ink-faint">{t("tree.cut")}</p> : null}
    </div>
  );
}

const dragPath = (path: string) => (event: DragEvent) => {
  event.dataTransfer.setData(DRAGGED_PATH, path);
  // Plain inputs hold templates.
  event.dataTransfer.setData("text/plain", `{{${path}}}`);
};

function InsertButton({ path, into }: { path: string; into: NonNullable<InsertPath> }) {
  const { t } = useTranslation();
  const name = t("tree.insert", { path, field: into.name });
  return (
    <button
      type="button"
      aria-label={name}
      title={name}
      onClick={() => into.insert(path)}
      className="flex size-6 shrink-0 items-center justify-center opacity-0 group-focus-within:opacity-100 group-hover:opacity-100"
    >
      <CornerDownLeft className="size-3.5" aria-hidden />
    </button>
  );
}

/** The paths of all changed values and of their containers. */
function changedPaths(before: Json, after: Json): Set<string> {
  const found = new Set<string>();
  for (const { path } of changesIn(before, after))
    for (let depth = 1; depth <= path.length; depth++) found.add(pathText(path.slice(0, depth)));
  return found;
}
