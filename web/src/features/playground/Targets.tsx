import { useInfiniteQuery, useQuery } from "@tanstack/react-query";
import { Plus, Trash2 } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { BOX } from "@/components/LabelledField";
import { type Suggestion, SuggestionInput } from "@/components/SuggestionInput";
import { agentsFound } from "../agents/agents";
import { models } from "../models/models";
import { TARGETS_MAX, type Target } from "./prompt";

/** What answers the prompt: a column for each. */
export function Targets(props: { targets: readonly Target[]; onChange: (targets: Target[]) => void }) {
  const { t } = useTranslation();
  const { targets, onChange } = props;
  const set = (at: number, target: Target) => onChange(targets.map((before, nth) => (nth === at ? target : before)));
  return (
    <fieldset>
      <legend className="mb-0.5 font-medium">{t("playground.targets")}</legend>
      <ul className="space-y-2">
        {targets.map((target, at) => (
          // biome-ignore lint/suspicious/noArrayIndexKey: columns have no other identity while their names are typed
          <li key={at} className="flex gap-2">
            <TargetFields target={target} nth={at + 1} onChange={(next) => set(at, next)} />
            <IconButton
              icon={Trash2}
              name={t("playground.targetRemove", { nth: at + 1 })}
              disabled={targets.length === 1}
              onClick={() => onChange(targets.filter((_, nth) => nth !== at))}
            />
          </li>
        ))}
      </ul>
      <p className="my-1 text-xs text-ink-faint">{t("playground.targetsAbout")}</p>
      <Button
        disabled={targets.length >= TARGETS_MAX}
        onClick={() => onChange([...targets, { kind: "model", name: "" }])}
      >
        <Plus className="size-4" aria-hidden /> {t("playground.targetAdd")}
      </Button>
    </fieldset>
  );
}

function TargetFields(props: { target: Target; nth: number; onChange: (target: Target) => void }) {
  const { t } = useTranslation();
  const { target, nth, onChange } = props;
  return (
    <>
      <select
        className={`${BOX} w-auto!`}
        aria-label={t("playground.targetKind", { nth })}
        value={target.kind}
        onChange={(event) => onChange({ kind: event.target.value as Target["kind"], name: "" })}
      >
        <option value="model">{t("playground.model")}</option>
        <option value="agent">{t("playground.agent")}</option>
      </select>
      <div className="min-w-0 flex-1">
        {target.kind === "model" ? (
          <ModelInput name={target.name} nth={nth} onChange={(name) => onChange({ kind: "model", name })} />
        ) : (
          <AgentInput name={target.name} nth={nth} onChange={(name) => onChange({ kind: "agent", name })} />
        )}
      </div>
    </>
  );
}

interface NameProps {
  name: string;
  nth: number;
  onChange: (name: string) => void;
}

function ModelInput({ name, nth, onChange }: NameProps) {
  const { t } = useTranslation();
  const known = useQuery(models());
  const suggestions: Suggestion[] = (known.data?.models ?? []).map((one) => ({ name: one.name, about: "" }));
  return (
    <SuggestionInput
      className={BOX}
      aria-label={t("playground.modelName", { nth })}
      placeholder={known.data?.default ?? t("playground.defaultModel")}
      maxLength={200}
      value={name}
      suggestions={suggestions}
      onType={onChange}
      onChoose={onChange}
    />
  );
}

function AgentInput({ name, nth, onChange }: NameProps) {
  const { t } = useTranslation();
  const [words, setWords] = useState("");
  const known = useInfiniteQuery(agentsFound(words));
  const agents = known.data?.pages[0]?.agents ?? [];
  return (
    <SuggestionInput
      className={BOX}
      aria-label={t("playground.agentName", { nth })}
      maxLength={200}
      value={name}
      suggestions={agents.map((one) => ({ name: one.name, about: "" }))}
      onSearch={setWords}
      onType={onChange}
      onChoose={onChange}
    />
  );
}
