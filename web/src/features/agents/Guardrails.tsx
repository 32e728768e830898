import { Plus, X } from "lucide-react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { BOX, LabelledField } from "@/components/LabelledField";
import { changed, objectOf } from "./agentFields";
import { textOf } from "./agents";

const SIDES = ["before", "after"] as const;
const KINDS = ["prompt", "expression", "schema"] as const;
type Kind = (typeof KINDS)[number];

/** The guardrails of an agent: rules for its input and its output. */
export function Guardrails(props: { value: JsonObject; onChange: (value: JsonObject | undefined) => void }) {
  const { t } = useTranslation();
  return (
    <section aria-label={t("agents.guardrails")} className="space-y-3">
      <div>
        <h2 className="font-medium">{t("agents.guardrails")}</h2>
        <p className="text-xs text-ink-faint">{t("agents.guardrailsAbout")}</p>
      </div>
      {SIDES.map((side) => {
        const rules = Array.isArray(props.value[side]) ? props.value[side].map(objectOf) : [];
        const put = (next: JsonObject[]) => {
          const all = changed(props.value, [side], next.length > 0 ? next : undefined);
          props.onChange(Object.keys(all).length > 0 ? all : undefined);
        };
        return (
          <div key={side}>
            <ul className="space-y-2">
              {rules.map((rule, at) => (
                // biome-ignore lint/suspicious/noArrayIndexKey: rules have no unique names, their position identifies them
                <li key={at} className="rounded-md border border-line p-3">
                  <Rule
                    side={side}
                    rule={rule}
                    onChange={(next) => put(rules.map((one, other) => (other === at ? next : one)))}
                    onRemove={() => put(rules.filter((_, other) => other !== at))}
                  />
                </li>
              ))}
            </ul>
            <Button kind="quiet" onClick={() => put([...rules, { prompt: "" }])}>
              <Plus className="size-4" aria-hidden /> {t(`agents.addRule.${side}`)}
            </Button>
          </div>
        );
      })}
    </section>
  );
}

function Rule(props: {
  side: (typeof SIDES)[number];
  rule: JsonObject;
  onChange: (rule: JsonObject) => void;
  onRemove: () => void;
}) {
  const { t } = useTranslation();
  const { rule } = props;
  const kind: Kind = KINDS.find((one) => rule[one] !== undefined) ?? "prompt";
  const set = (name: string, value: Json | undefined) => props.onChange(changed(rule, [name], value));
  function turn(next: Kind) {
    const rest = Object.fromEntries(Object.entries(rule).filter(([name]) => !KINDS.some((one) => one === name)));
    props.onChange({ ...rest, [next]: next === "schema" ? { type: "object" } : "" });
  }
  return (
    <div className="grid gap-3 sm:grid-cols-2">
      <LabelledField name={t(`agents.must.${props.side}`)}>
        {(its) => (
          <select {...its} value={kind} onChange={(event) => turn(event.target.value as Kind)}>
            {KINDS.map((one) => (
              <option key={one} value={one}>
                {t(`agents.rules.${one}`)}
              </option>
            ))}
          </select>
        )}
      </LabelledField>
      <div className="flex items-end gap-2">
        <div className="flex-1">
          <LabelledField name={t("agents.ruleName")}>
            {(its) => (
              <input
                {...its}
                value={textOf(rule.name)}
                onChange={(event) => set("name", event.target.value || undefined)}
              />
            )}
          </LabelledField>
        </div>
        <IconButton
          icon={X}
          name={t("agents.removeRule", { name: textOf(rule.name) })}
          kind="danger"
          onClick={props.onRemove}
        />
      </div>
      <div className="sm:col-span-2">
        {kind === "schema" ? (
          <p className="text-ink-soft">{t("agents.schemaBelow")}</p>
        ) : (
          <LabelledField name={t(`agents.rules.${kind}`)} required>
            {(its) => (
              <textarea
                {...its}
                rows={2}
                className={`${BOX} ${kind === "expression" ? "font-mono text-xs" : ""}`}
                value={textOf(rule[kind])}
                onChange={(event) => props.onChange({ ...rule, [kind]: event.target.value })}
              />
            )}
          </LabelledField>
        )}
      </div>
      {props.side === "after" ? (
        <LabelledField name={t("agents.onFail")}>
          {(its) => (
            <select
              {...its}
              value={textOf(rule.onFail)}
              onChange={(event) => set("onFail", event.target.value || undefined)}
            >
              <option value="">{t("agents.fails.retry")}</option>
              <option value="fail">{t("agents.fails.fail")}</option>
            </select>
          )}
        </LabelledField>
      ) : null}
    </div>
  );
}
