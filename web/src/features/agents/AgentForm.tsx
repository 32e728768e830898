import { useQuery } from "@tanstack/react-query";
import { useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject, Text } from "@/api/views";
import { JsonField, jsonIn } from "@/components/JsonField";
import { LabelledField } from "@/components/LabelledField";
import { models } from "@/features/models/models";
import { textIn } from "@/i18n";
import { changed, numberIn, objectOf } from "./agentFields";
import { stringsOf, textOf } from "./agents";
import { Guardrails } from "./Guardrails";
import { ToolPicker } from "./ToolPicker";

const LEVELS = ["minimal", "low", "medium", "high"] as const;
const SCOPES = ["none", "execution", "session", "long_term"] as const;
const RESULTS = ["text", "json", "auto"] as const;

interface Props {
  agent: JsonObject;
  onChange: (agent: JsonObject) => void;
  disabled: boolean;
}

/** The settings of an agent. Settings without a field can be edited as JSON below. */
export function AgentForm(props: Props) {
  const { t, i18n } = useTranslation();
  const { agent } = props;
  const set = (path: readonly string[], value: Json | undefined) => props.onChange(changed(agent, path, value));
  return (
    <fieldset disabled={props.disabled} className="space-y-5">
      <legend className="sr-only">{t("agents.description")}</legend>
      <LabelledField name={t("agents.system")} about={t("agents.systemAbout")}>
        {(its) => {
          const text = textIn(agent.system as Text | undefined, i18n.language);
          return (
            <textarea
              {...its}
              rows={Math.min(16, Math.max(4, text.split("\n").length + 1))}
              value={text}
              readOnly={agent.system !== undefined && typeof agent.system !== "string"}
              onChange={(event) => set(["system"], event.target.value || undefined)}
            />
          );
        }}
      </LabelledField>
      <div className="grid gap-5 sm:grid-cols-2">
        <ModelField value={textOf(agent.model)} onChange={(model) => set(["model"], model || undefined)} />
        <Choice
          name={t("agents.thinking")}
          about={t("agents.thinkingAbout")}
          value={textOf(objectOf(agent.thinking).level).toLowerCase()}
          choices={LEVELS}
          word="agents.levels"
          onChange={(level) => set(["thinking", "level"], level)}
        />
      </div>
      <ToolPicker
        names={stringsOf(agent.tools)}
        disabled={props.disabled}
        onChange={(names) => set(["tools"], names.length > 0 ? names : undefined)}
      />
      <Limits {...props} set={set} />
      <MemoryFields {...props} set={set} />
      <Guardrails value={objectOf(agent.guardrails)} onChange={(rules) => set(["guardrails"], rules)} />
      <WholeJson {...props} />
    </fieldset>
  );
}

type SetField = Props & { set: (path: readonly string[], value: Json | undefined) => void };

function Limits({ agent, set }: SetField) {
  const { t } = useTranslation();
  return (
    <div className="grid gap-5 sm:grid-cols-2 lg:grid-cols-4">
      {(["temperature", "maxIterations", "maxTokens"] as const).map((name) => (
        <LabelledField key={name} name={t(`agents.${name}`)} about={t(`agents.${name}About`)}>
          {(its) => (
            <input
              {...its}
              type="number"
              min={name === "temperature" ? 0 : 1}
              max={name === "temperature" ? 2 : undefined}
              step={name === "temperature" ? 0.1 : 1}
              value={typeof agent[name] === "number" ? agent[name] : ""}
              onChange={(event) => set([name], numberIn(event.target.value))}
            />
          )}
        </LabelledField>
      ))}
      <Choice
        name={t("agents.result")}
        about={t("agents.resultAbout")}
        value={textOf(agent.result)}
        choices={RESULTS}
        word="agents.results"
        onChange={(result) => set(["result"], result)}
      />
    </div>
  );
}

function MemoryFields({ agent, set }: SetField) {
  const { t } = useTranslation();
  const memory = objectOf(agent.memory);
  return (
    <div className="grid gap-5 sm:grid-cols-2">
      <Choice
        name={t("agents.memory")}
        about={t("agents.memoryAbout")}
        value={textOf(memory.scope)}
        choices={SCOPES}
        word="agents.scopes"
        onChange={(scope) => set(["memory", "scope"], scope)}
      />
      <LabelledField name={t("agents.window")} about={t("agents.windowAbout")}>
        {(its) => (
          <input
            {...its}
            type="number"
            min={1}
            value={typeof memory.window === "number" ? memory.window : ""}
            onChange={(event) => set(["memory", "window"], numberIn(event.target.value))}
          />
        )}
      </LabelledField>
    </div>
  );
}

function ModelField(props: { value: string; onChange: (model: string) => void }) {
  const { t } = useTranslation();
  const known = useQuery(models());
  const names = useId();
  return (
    <LabelledField name={t("agents.model")} about={t("agents.modelAbout")}>
      {(its) => (
        <>
          <input
            {...its}
            list={names}
            value={props.value}
            spellCheck={false}
            placeholder={known.data?.default ?? ""}
            onChange={(event) => props.onChange(event.target.value)}
          />
          <datalist id={names}>
            {known.data?.models.map((one) => (
              <option key={one.name} value={one.name} />
            ))}
          </datalist>
        </>
      )}
    </LabelledField>
  );
}

function Choice(props: {
  name: string;
  about: string;
  value: string;
  choices: readonly string[];
  /** Prefix of the keys of the labels. */
  word: string;
  onChange: (choice: string | undefined) => void;
}) {
  const { t } = useTranslation();
  return (
    <LabelledField name={props.name} about={props.about}>
      {(its) => (
        <select {...its} value={props.value} onChange={(event) => props.onChange(event.target.value || undefined)}>
          <option value="">{t("agents.asUsual")}</option>
          {props.choices.map((one) => (
            <option key={one} value={one}>
              {t(`${props.word}.${one}`)}
            </option>
          ))}
        </select>
      )}
    </LabelledField>
  );
}

/** The whole agent as editable JSON. */
function WholeJson({ agent, onChange }: Props) {
  const { t } = useTranslation();
  const savedText = JSON.stringify(agent, null, 2);
  const [text, setText] = useState(savedText);
  useEffect(
    () => setText((now) => (JSON.stringify(jsonIn(now), null, 2) === savedText ? now : savedText)),
    [savedText],
  );
  return (
    <details>
      <summary className="cursor-pointer font-medium">{t("agents.asJson")}</summary>
      <div className="mt-2">
        <JsonField
          name={t("agents.description")}
          about={t("agents.asJsonAbout")}
          text={text}
          rows={Math.min(24, Math.max(8, text.split("\n").length))}
          onChange={(next) => {
            setText(next);
            const said = jsonIn(next);
            if (said !== undefined && said !== null && typeof said === "object" && !Array.isArray(said)) onChange(said);
          }}
        />
      </div>
    </details>
  );
}
