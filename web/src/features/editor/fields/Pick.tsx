/** Field for the name of a tool, agent, model, workflow or node, with suggestions; other names can be typed. */

import { useQuery } from "@tanstack/react-query";
import { X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest } from "@/api/http";
import type { Schemas } from "@/api/views";
import { IconButton } from "@/components/IconButton";
import { type Suggestion, SuggestionInput } from "@/components/SuggestionInput";
import { type ServerSearch, useServerSearch } from "@/components/useServerSearch";
import { useWorkflowSearch } from "@/components/useWorkflowSearch";
import type { Agent } from "@/features/agents/agents";
import type { Tool } from "@/features/tools/tools";
import { textIn } from "@/i18n";
import type { NameKind } from "../document/shapes";
import { ariaProps, fieldStyle } from "./boxes";
import type { BoxProps } from "./fieldContext";
import { useForm } from "./fieldContext";

interface Names {
  suggestions: Suggestion[];
  note?: string | undefined;
  /** Search on the server, if there are too many names to load. */
  onSearch?: (words: string) => void;
}

function useNames(of: NameKind): Names {
  const { i18n } = useTranslation();
  const { nodes } = useForm();
  const workflows = useWorkflowSearch({ disabled: false });
  const tools = useServerSearch<Tool>("tools");
  const agents = useServerSearch<Agent>("agents");
  const models = useQuery({ queryKey: ["names", of], queryFn: modelNames, enabled: of === "model", staleTime: 30_000 });
  switch (of) {
    case "node":
      return { suggestions: nodes.map((name) => ({ name, about: "" })) };
    case "model":
      return { suggestions: models.data ?? [] };
    case "tool":
      return namesOf(tools, (one) => ({ name: one.name, about: one.description }));
    case "agent":
      return namesOf(agents, (one) => ({ name: one.name, about: "" }));
    case "workflow":
      return namesOf(workflows, ({ id, names, name }) => {
        const text = textIn(names ?? name, i18n.language, id);
        return { name: id, about: text === id ? "" : text };
      });
  }
}

function namesOf<T>(found: ServerSearch<T>, suggestionOf: (one: T) => Suggestion): Names {
  return { suggestions: found.entries.map(suggestionOf), note: found.note, onSearch: found.search };
}

async function modelNames({ signal }: { signal: AbortSignal }): Promise<Suggestion[]> {
  const catalogue = await apiRequest<Schemas["ModelCatalogue"]>("/api/models", { signal });
  return catalogue.models.map((one) => ({ name: one.name, about: "" }));
}

export function Pick(box: BoxProps & { of: NameKind }) {
  const names = useNames(box.of);
  return (
    <SuggestionInput
      {...ariaProps(box)}
      value={typeof box.value === "string" ? box.value : ""}
      {...names}
      onType={(text) => box.onChange(text || undefined)}
      onChoose={box.onChange}
      className={fieldStyle(box.isWrong)}
    />
  );
}

export function Picks(box: BoxProps & { of: NameKind }) {
  const { t } = useTranslation();
  const names = useNames(box.of);
  const [typed, setTyped] = useState("");
  const picked = Array.isArray(box.value) ? box.value.map(String) : [];
  const change = (next: string[]) => box.onChange(next.length > 0 ? next : undefined);
  const add = (name: string) => {
    if (name && !picked.includes(name)) change([...picked, name]);
    setTyped("");
  };
  return (
    <div>
      {picked.length > 0 ? (
        <ul className="mb-1 flex flex-wrap gap-1">
          {picked.map((one) => (
            <li key={one} className="flex h-7 items-center rounded-md bg-sunken pl-2 text-sm">
              {one}
              <IconButton
                icon={X}
                name={t("editor.takeOut", { name: one })}
                size="small"
                onClick={() => change(picked.filter((other) => other !== one))}
              />
            </li>
          ))}
        </ul>
      ) : null}
      <SuggestionInput
        {...ariaProps(box)}
        aria-labelledby={box.labelledBy}
        placeholder={t("editor.addOne")}
        value={typed}
        {...names}
        suggestions={names.suggestions.filter((one) => !picked.includes(one.name))}
        onType={setTyped}
        onChoose={add}
        onEnter={() => add(typed.trim())}
        onBlur={() => add(typed.trim())}
        className={fieldStyle(box.isWrong)}
      />
    </div>
  );
}
