/** How nodes and their steps are called in the language of the page; by their ids where they have no name. */
import { createContext, useCallback, useContext, useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { DefinitionNode } from "@/api/views";
import { textIn } from "@/i18n";

/** The nodes that a page tells of. */
export const NodesShown = createContext<readonly DefinitionNode[]>([]);

export type NameOf = (node: string) => string;

export function useNodeName(): NameOf {
  const { i18n } = useTranslation();
  const nodes = useContext(NodesShown);
  const names = useMemo(
    () => new Map(nodes.map((one) => [one.id, textIn(one.name, i18n.language, one.id)])),
    [nodes, i18n.language],
  );
  return useCallback((node) => names.get(node) ?? node, [names]);
}

/** People count branches from one; data, and what formulas see, from nought. */
export const branchNumber = (branch: number | string): number => Number(branch) + 1;

/** A step by the names of its nodes: `each[1.2]/write#3` is "Each chapter [3] / Write #3". */
export function stepName(step: string, called: NameOf): string {
  const parts = step.split("/").map((part) => {
    const [, node = part, branch = "", visit = ""] = /^(.*?)(?:~.*?)?(?:\[\d+\.(\d+)\])?(#\d+)?$/.exec(part) ?? [];
    return [called(node), branch && `[${branchNumber(branch)}]`, visit].filter(Boolean).join(" ");
  });
  return parts.join(" / ");
}

/** An arrow between nodes that is named by them; by its own id where it has one. */
export function arrowName(arrow: string, called: NameOf): string {
  const [, source, target, nth = ""] = /^(.+?)->(.+?)( \d+)?$/.exec(arrow) ?? [];
  return source && target ? `${called(source)} → ${called(target)}${nth}` : arrow;
}
