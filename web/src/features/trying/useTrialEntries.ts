/** What can be tried of the node that was clicked on, as entries of a menu. */
import type { DefinitionNode } from "@/api/views";
import type { MenuEntry } from "@/features/editor/canvas/CanvasMenu";
import { useEditor } from "@/features/editor/editorContext";
import { isPinnable, isRun } from "./lastRuns";
import { tryoutOf, useTryout } from "./tryout";
import { useRun } from "./useRun";

export function useTrialEntries(node: DefinitionNode | undefined): MenuEntry[] {
  const { id, mayChange } = useEditor();
  const { run, pin } = useRun();
  const pins = useTryout(id, (now) => now.pins);
  const breakpoints = useTryout(id, (now) => now.breakpoints);
  if (!node || !mayChange || !isRun(node.type)) return [];
  const acts = tryoutOf(id).getState();
  const isStop = breakpoints.includes(node.id);
  return [
    { name: "runTo", act: () => run.mutate({ until: node.id }), isOff: run.isPending },
    ...(!isPinnable(node.type)
      ? []
      : node.id in pins
        ? [{ name: "unpin", act: () => acts.unpin(node.id) }]
        : [{ name: "pin", act: () => void pin(node) }]),
    { name: isStop ? "unstop" : "stop", act: () => acts.stopAt(node.id, !isStop) },
  ];
}
