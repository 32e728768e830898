/** Choices of the palette in groups: node types, and on a search also tools, agents and saved workflows. */
import { useEffect } from "react";
import { useTranslation } from "react-i18next";
import type { Choice } from "@/components/Chooser";
import { bestMatches } from "@/components/matching";
import { useServerSearch } from "@/components/useServerSearch";
import { useWorkflowSearch } from "@/components/useWorkflowSearch";
import type { Agent } from "@/features/agents/agents";
import type { Tool } from "@/features/tools/tools";
import { iconOf } from "@/graph/render/nodeIcons";
import { textIn } from "@/i18n";
import { namedChoice, PALETTE_GROUPS } from "../document/palette";

export interface PaletteGroup {
  name: string;
  label: string;
  choices: Choice[];
}

/** Groups without a match are absent. `words` is empty: the node types alone. */
export function usePaletteGroups(words: string): PaletteGroup[] {
  const { t, i18n } = useTranslation();
  const { search: findTools, ...tools } = useServerSearch<Tool>("tools");
  const { search: findAgents, ...agents } = useServerSearch<Agent>("agents");
  const { search: findWorkflows, ...workflows } = useWorkflowSearch({ disabled: false });
  // biome-ignore lint/correctness/useExhaustiveDependencies: the searches are new functions at each render
  useEffect(() => {
    for (const find of words ? [findTools, findAgents, findWorkflows] : []) find(words);
  }, [words]);
  const types = PALETTE_GROUPS.map(({ name, types }) => ({
    name,
    choices: types.map((type) => ({
      id: type as string,
      name: t(`node.${type}`),
      about: t(`nodeAbout.${type}`),
      icon: iconOf(type),
    })),
  }));
  const named = (type: string, id: string, name: string, about: string): Choice => ({
    ...{ id: namedChoice(type, id), name, about, icon: iconOf(type) },
  });
  const found = [
    { name: "savedAgents", choices: agents.entries.map((one) => named("agent", one.name, one.name, t("node.agent"))) },
    { name: "savedTools", choices: tools.entries.map((one) => named("tool", one.name, one.name, one.description)) },
    {
      name: "savedWorkflows",
      choices: workflows.entries.map(({ id, names, name }) =>
        named("workflow", id, textIn(names ?? name, i18n.language, id), id),
      ),
    },
  ];
  return (words ? [...types, ...found] : types)
    .map(({ name, choices }) => ({
      name,
      label: t(`paletteGroup.${name}`),
      choices: bestMatches(words, choices, (one) => [one.name, one.about, one.id]),
    }))
    .filter((group) => group.choices.length > 0);
}
