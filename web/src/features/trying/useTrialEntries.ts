/** Partial-run actions of the clicked node, as menu entries. */
import type { DefinitionNode } from "@/api/views";
import type { MenuEntry } from "@/features/editor/canvas/CanvasMenu";
import { useEditor } from "@/features/editor/editorContext";
import { isPinnable, isRunnable } from "./lastRuns";
import { tryoutOf, useTryout } from "./tryout";
import { useRun } from "./useRun";

export function useTrialEntries(node: DefinitionNode | undefined): MenuEntry[] {
  const { id, mayChange } = useEditor();
  const { run, pin } = useRun();
  const pins = useTryout(id, (now) => now.pins);
  const breakpoints = useTryout(id, (now) => now.breakpoints);
  if (!node || !mayChange || !isRunnable(node.type)) return [];
  const acts = tryoutOf(id).getState();
  const hasBreakpoint = breakpoints.includes(node.id);
  return [
    { name: "runTo", act: () => run.mutate({ until: node.id }), isOff: run.isPending },
    ...(!isPinnable(node.type)
      ? []
      : node.id in pins
        ? [{ name: "unpin", act: () => acts.unpin(node.id) }]
        : [{ name: "pin", act: () => void pin(node) }]),
    { name: hasBreakpoint ? "unstop" : "stop", act: () => acts.setBreakpoint(node.id, !hasBreakpoint) },
  ];
}
