import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { Plus, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { LabelledField } from "@/components/LabelledField";
import { SuggestionInput } from "@/components/SuggestionInput";
import { useServerSearch } from "@/components/useServerSearch";
import { type Tool, toolsByName } from "@/features/tools/tools";

/** The tools of an agent, with a field to add one by name. */
export function ToolPicker(props: {
  names: readonly string[];
  disabled: boolean;
  onChange: (names: string[]) => void;
}) {
  const { t } = useTranslation();
  const known = useQuery({ ...toolsByName(props.names), placeholderData: (before) => before });
  const { entries, note, search } = useServerSearch<Tool>("tools");
  const [wanted, setWanted] = useState("");
  const byName = new Map((known.data ?? []).map((one) => [one.name, one]));
  const free = entries.filter((one) => !props.names.includes(one.name));
  function add(name: string) {
    if (name && !props.names.includes(name)) props.onChange([...props.names, name]);
    setWanted("");
  }
  return (
    <div>
      <LabelledField name={t("agents.tools")} about={t("agents.toolsAbout")}>
        {(its) => (
          <div className="flex gap-2">
            <div className="min-w-0 flex-1">
              <SuggestionInput
                {...its}
                value={wanted}
                placeholder={t("agents.addTool")}
                suggestions={free.map((one) => ({ name: one.name, about: one.description }))}
                note={note}
                onSearch={search}
                onType={setWanted}
                onChoose={add}
                onEnter={() => add(wanted.trim())}
              />
            </div>
            <Button onClick={() => add(wanted.trim())} disabled={!wanted.trim()}>
              <Plus className="size-4" aria-hidden /> {t("agents.add")}
            </Button>
          </div>
        )}
      </LabelledField>
      {props.names.length > 0 ? (
        <ul className="mt-2 flex flex-wrap gap-1.5">
          {props.names.map((one) => {
            const isGone = known.isSuccess && !known.isPlaceholderData && !byName.has(one);
            return (
              <li
                key={one}
                title={isGone ? t("agents.noSuchTool") : byName.get(one)?.description}
                className={`flex items-center rounded-full pl-2.5 text-sm ${isGone ? "bg-failed-soft text-failed" : "bg-accent-soft text-accent"}`}
              >
                <Link to="/tools/$name" params={{ name: one }} className="font-mono text-xs hover:underline">
                  {one}
                </Link>
                <button
                  type="button"
                  aria-label={t("agents.removeTool", { name: one })}
                  onClick={() => props.onChange(props.names.filter((other) => other !== one))}
                  className="flex size-6 items-center justify-center rounded-full hover:bg-surface disabled:hidden"
                >
                  <X className="size-3.5" aria-hidden />
                </button>
              </li>
            );
          })}
        </ul>
      ) : null}
    </div>
  );
}
