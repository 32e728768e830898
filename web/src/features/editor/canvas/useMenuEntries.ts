/** Entries of the context menu for the clicked node, edge or position. */
import { useTranslation } from "react-i18next";
import { useTrialEntries } from "@/features/trying/useTrialEntries";
import type { Point } from "@/graph/layout/geometry";
import type { Picture } from "@/graph/model/picture";
import { useFolding } from "@/graph/render/folding";
import { useEditor } from "../editorContext";
import type { MenuEntry } from "./CanvasMenu";
import type { OpenDialog } from "./drawing";
import type { Verbs } from "./useVerbs";

export interface MenuTarget {
  node?: string;
  edge?: string;
  at: Point;
}

/** The page receives the clipboard event only after the menu has released the focus. */
const CLOSES_MS = 50;

export function useMenuEntries(
  pointed: MenuTarget,
  picture: Picture,
  verbs: Verbs,
  ask: (dialog: OpenDialog) => void,
): MenuEntry[][] {
  const { t } = useTranslation();
  const { draft } = useEditor();
  const folding = useFolding();
  const { node, edge, at } = pointed;
  const pointedNode = draft.shown.nodes.find((one) => one.id === node);
  const isNote = pointedNode?.type === "note";
  const trialEntries = useTrialEntries(isNote ? undefined : pointedNode);
  const region = picture.regions?.find((one) => one.id === node);
  const copy = (verb: "copy" | "cut") => setTimeout(() => document.execCommand(verb), CLOSES_MS);
  const paste = async () => {
    try {
      verbs.paste(await navigator.clipboard.readText(), at);
    } catch {
      verbs.showMessage(t("canvas.pasteByKey"));
    }
  };
  const adding = node ? { after: node } : { at };
  if (isNote) return [copies(), [{ name: "remove", keys: "Del", act: verbs.remove }]];
  return [
    edge !== undefined
      ? [{ name: "insert", act: () => ask({ kind: "add", adding: { on: edge } }) }]
      : [{ name: node ? "addAfter" : "add", keys: "A", act: () => ask({ kind: "add", adding }) }],
    node
      ? [
          ...copies(),
          { name: "frame", keys: "F", act: () => verbs.frame(at) },
          { name: "connect", keys: "C", act: () => ask({ kind: "connect", from: { kind: "node", id: node } }) },
        ]
      : [],
    trialEntries,
    node || edge
      ? [
          ...(region ? [{ name: "fold", keys: "G", act: () => folding.toggle(region.id) }] : []),
          { name: "remove", keys: "Del", act: verbs.remove },
        ]
      : [
          { name: "note", keys: "N", act: () => verbs.add({ type: "note", at }) },
          { name: "frame", keys: "F", act: () => verbs.frame(at) },
          { name: "paste", keys: "Ctrl V", act: () => void paste() },
          { name: "all", keys: "Ctrl A", act: verbs.selectAll },
          { name: "tidy", keys: "T", act: verbs.tidy },
          { name: "tidyInRows", keys: "⇧ T", act: verbs.tidyInRows },
        ],
  ];

  function copies(): MenuEntry[] {
    return [
      { name: "copy", keys: "Ctrl C", act: () => copy("copy") },
      { name: "cut", keys: "Ctrl X", act: () => copy("cut") },
      { name: "duplicate", keys: "Ctrl D", act: verbs.duplicate },
    ];
  }
}
