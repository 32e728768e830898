/**
 * The graph as a tree for keyboard and screen reader users; it offers the same actions as the canvas.
 * ↑ ↓ Home End  move      → ←  expand and collapse      letters  jump to a name
 * Enter  opens the properties      Delete  removes      C  connects      +  adds a successor
 */
import { useVirtualizer } from "@tanstack/react-virtual";
import { ChevronDown, ChevronRight, CornerDownRight } from "lucide-react";
import { type KeyboardEvent, useEffect, useId, useMemo, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { StatusIcon } from "@/components/Status";
import { nextWithPrefix, useTypeAhead } from "@/components/useTypeAhead";
import type { Picture } from "@/graph/model/picture";
import { iconOf } from "./nodeIcons";
import { keyOf, type Row, rowsOf } from "./outlineRows";
import { useBoxOverlay } from "./overlay";

const ROW = 34;

export interface OutlineVerbs {
  remove: (row: Row) => void;
  connect: (row: Row) => void;
  add: (row: Row) => void;
}

export function Outline(props: {
  picture: Picture;
  picked: { kind: "node" | "edge"; id: string } | null;
  /** Called when the active row changes. */
  onMove: (row: Row) => void;
  onPick: (row: Row) => void;
  /** Only set if the workflow can be edited. */
  verbs?: OutlineVerbs;
  hasFocus?: boolean;
}) {
  const { t } = useTranslation();
  const { picture, picked, onMove, onPick, verbs } = props;
  const id = useId();
  const [toggled, setTurned] = useState<ReadonlySet<string>>(new Set());
  const rows = useMemo(() => rowsOf(picture, toggled), [picture, toggled]);
  const [activeKey, setHere] = useState<string | null>(null);
  const key = picked ? keyOf(picked.kind, picked.id) : activeKey;
  const found = rows.findIndex((row) => row.key === key);
  const at = found < 0 ? 0 : found;
  const tree = useRef<HTMLDivElement>(null);
  const list = useVirtualizer({
    count: rows.length,
    getScrollElement: () => tree.current,
    estimateSize: () => ROW,
    overscan: 12,
  });
  // biome-ignore lint/correctness/useExhaustiveDependencies: scroll only when the active row changes, not at each render
  useEffect(() => {
    if (rows.length > 0) list.scrollToIndex(at);
  }, [at, rows.length]);
  useEffect(() => {
    if (props.hasFocus) tree.current?.focus();
  }, [props.hasFocus]);

  const go = (to: number) => {
    const row = rows[Math.min(Math.max(to, 0), rows.length - 1)];
    if (!row) return;
    setHere(row.key);
    onMove(row);
  };
  const toggle = (row: Row) => {
    const next = new Set(toggled);
    if (!next.delete(row.key)) next.add(row.key);
    setTurned(next);
  };
  const typed = useTypeAhead();
  const goTo = (letter: string) => {
    const next = nextWithPrefix(rows, at, typed.add(letter), (row) => row.box?.name ?? "");
    if (next) go(rows.indexOf(next));
  };
  const press = (event: KeyboardEvent) => {
    const row = rows[at];
    if (!row || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "ArrowDown") go(at + 1);
    else if (event.key === "ArrowUp") go(at - 1);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(rows.length - 1);
    else if (event.key === "ArrowRight") row.isOpen === false ? toggle(row) : row.isOpen && go(at + 1);
    else if (event.key === "ArrowLeft") row.isOpen ? toggle(row) : go(rows.findIndex((one) => one.key === row.parent));
    else if (event.key === "Enter" || event.key === " ") onPick(row);
    else if (verbs && event.key === "Delete") verbs.remove(row);
    else if (verbs && (event.key === "+" || event.key === "Insert")) verbs.add(row);
    else if (verbs && event.key === "c" && !typed.isContinuing()) verbs.connect(row);
    else if (event.key.length === 1) goTo(event.key.toLowerCase());
    else return;
    event.preventDefault();
  };
  return (
    <div
      ref={tree}
      role="tree"
      aria-label={t("outline.label")}
      aria-activedescendant={rows[at] ? `${id}-${at}` : undefined}
      tabIndex={0}
      onKeyDown={press}
      className="group h-full min-h-40 overflow-auto rounded-md"
    >
      <div style={{ height: list.getTotalSize() }} className="relative">
        {list.getVirtualItems().map((one) => {
          const row = rows[one.index] as Row;
          return (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the tree handles the keys
            <div
              key={row.key}
              id={`${id}-${one.index}`}
              role="treeitem"
              tabIndex={-1}
              aria-level={row.depth}
              aria-posinset={row.position}
              aria-setsize={row.siblingCount}
              aria-selected={one.index === at}
              {...(row.isOpen === null ? {} : { "aria-expanded": row.isOpen })}
              onClick={() => {
                setHere(row.key);
                onMove(row);
              }}
              onDoubleClick={() => onPick(row)}
              style={{ transform: `translateY(${one.start}px)`, height: ROW, paddingLeft: (row.depth - 1) * 18 }}
              className="absolute inset-x-0 flex cursor-pointer items-center gap-1.5 rounded-md pr-2 hover:bg-sunken aria-selected:bg-accent-soft group-focus-visible:aria-selected:outline-2 group-focus-visible:aria-selected:-outline-offset-2 group-focus-visible:aria-selected:outline-accent"
            >
              <ExpandToggle isOpen={row.isOpen} onTurn={() => toggle(row)} />
              {row.box ? <BoxRow row={row} picture={picture} /> : <ArrowRow row={row} picture={picture} />}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function ExpandToggle({ isOpen, onTurn }: { isOpen: boolean | null; onTurn: () => void }) {
  if (isOpen === null) return <span className="w-6 shrink-0" />;
  const Icon = isOpen ? ChevronDown : ChevronRight;
  return (
    <span
      aria-hidden
      onClick={(event) => {
        event.stopPropagation();
        onTurn();
      }}
      className="flex size-6 shrink-0 items-center justify-center rounded text-ink-faint hover:bg-surface"
    >
      <Icon className="size-4" />
    </span>
  );
}

function BoxRow({ row, picture }: { row: Row; picture: Picture }) {
  const { t } = useTranslation();
  const overlay = useBoxOverlay(row.id);
  const type = row.box?.type ?? "";
  const Icon = iconOf(type);
  const next = picture.arrows.filter((arrow) => arrow.source === row.id).length;
  return (
    <>
      <Icon className="size-4 shrink-0 text-ink-soft" aria-hidden />
      <span className="truncate font-medium">
        <bdi>{row.box?.name}</bdi>
      </span>
      <span className="ml-auto shrink-0 text-xs text-ink-faint">{t(`node.${type}`, type)}</span>
      {overlay ? (
        <span className="flex shrink-0 items-center gap-1 text-xs text-ink-soft">
          {overlay.count} <StatusIcon status={overlay.look} />
          <span className="sr-only">{t(`status.${overlay.look}`)}</span>
        </span>
      ) : null}
      <span className="sr-only">{t("outline.next", { count: next })}</span>
    </>
  );
}

function ArrowRow({ row, picture }: { row: Row; picture: Picture }) {
  const { t } = useTranslation();
  const { arrow } = row;
  const target = picture.boxes.find((box) => box.id === arrow?.target)?.name;
  return (
    <>
      <CornerDownRight className="size-4 shrink-0 text-ink-faint" aria-hidden />
      <span className="truncate text-ink-soft">{t("outline.leads", { name: target })}</span>
      {arrow?.label ? <span className="ml-auto truncate text-xs text-ink-faint">{arrow.label}</span> : null}
    </>
  );
}
