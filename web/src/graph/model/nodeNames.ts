/** Display names of nodes and steps in the language of the page; an unnamed node is shown by its id. */
import { createContext, useCallback, useContext, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode } from "@/api/views";
import { textIn } from "@/i18n";

/** The nodes of the workflow that the page shows. */
export const NodesContext = createContext<readonly DefinitionNode[]>([]);

export type NameOf = (node: string) => string;

export function useNodeName(): NameOf {
  const { i18n } = useTranslation();
  const nodes = useContext(NodesContext);
  const names = useMemo(
    () => new Map(nodes.map((one) => [one.id, textIn(one.name, i18n.language, one.id)])),
    [nodes, i18n.language],
  );
  return useCallback((node) => names.get(node) ?? node, [names]);
}

/** The UI counts branches from 1; data and expressions count them from 0. */
export const branchNumber = (branch: number | string): number => Number(branch) + 1;

/** Name a step by the names of its nodes: `each[1.2]/write#3` becomes "Each chapter [3] / Write #3". */
export function stepName(step: string, nameOf: NameOf): string {
  const parts = step.split("/").map((part) => {
    const [, node = part, branch = "", visit = ""] = /^(.*?)(?:~.*?)?(?:\[\d+\.(\d+)\])?(#\d+)?$/.exec(part) ?? [];
    return [nameOf(node), branch && `[${branchNumber(branch)}]`, visit].filter(Boolean).join(" ");
  });
  return parts.join(" / ");
}

/** Name an edge by the names of its two nodes, or by its own id if it has one. */
export function arrowName(arrow: string, called: NameOf): string {
  const [, source, target, nth = ""] = /^(.+?)->(.+?)( \d+)?$/.exec(arrow) ?? [];
  return source && target ? `${called(source)} → ${called(target)}${nth}` : arrow;
}
