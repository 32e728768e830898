/** A condition as rows of field, operator and value, above its expression. */
import { Plus, X } from "lucide-react";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import {
  type Condition,
  type ConditionRow,
  type KnownPath,
  knownPaths,
  type Operator,
  operatorsFor,
  readCondition,
  takesValue,
  writeCondition,
} from "../document/conditions";
import { textOfValue, valueOfText } from "./boxes";
import { useForm } from "./fieldContext";

const SMALL = "h-8 min-w-0 rounded-md border border-line-strong bg-surface px-2 text-sm";

/** `text` is the expression; one that rows cannot represent is edited as text. */
export function ConditionBuilder({ text, onChange }: { text: string; onChange: (text: string) => void }) {
  const { t } = useTranslation();
  const { known } = useForm();
  const [isAdding, setAdding] = useState(false);
  const condition = readCondition(text);
  if (!condition) return <p className="mb-1 text-xs text-ink-faint">{t("builder.tooComplex")}</p>;
  const paths = knownPaths(known.names);
  const { rows } = condition;
  const change = (next: Partial<Condition>) => onChange(writeCondition({ ...condition, ...next }));
  const add = (path: string) => {
    setAdding(false);
    const type = paths.find((one) => one.path === path)?.type ?? "";
    change({ rows: [...rows, withOperator({ path, operator: "eq" }, type, operatorsFor(type)[0] as Operator)] });
  };
  return (
    <fieldset aria-label={t("builder.label")} className="mb-1 space-y-1">
      {rows.map((row, at) => (
        // biome-ignore lint/suspicious/noArrayIndexKey: rows have no identity besides their index
        <div key={at} className="space-y-1">
          {at === 1 ? <Join join={condition.join} onChange={(join) => change({ join })} /> : null}
          {at > 1 ? <p className="px-1 text-xs text-ink-faint">{t(`builder.${condition.join}`)}</p> : null}
          <Row
            row={row}
            nth={at + 1}
            paths={paths}
            onChange={(next) => change({ rows: rows.with(at, next) })}
            onRemove={() => change({ rows: rows.toSpliced(at, 1) })}
          />
        </div>
      ))}
      {isAdding || rows.length === 0 ? (
        <PathSelect label={t("builder.field", { nth: rows.length + 1 })} path="" paths={paths} onChoose={add} />
      ) : (
        <Button kind="quiet" className="h-7 px-2 text-sm" onClick={() => setAdding(true)}>
          <Plus className="size-4" aria-hidden /> {t("builder.add")}
        </Button>
      )}
    </fieldset>
  );
}

function Join({ join, onChange }: { join: Condition["join"]; onChange: (join: Condition["join"]) => void }) {
  const { t } = useTranslation();
  return (
    <select
      aria-label={t("builder.join")}
      value={join}
      onChange={(event) => onChange(event.target.value as Condition["join"])}
      className={SMALL}
    >
      <option value="and">{t("builder.and")}</option>
      <option value="or">{t("builder.or")}</option>
    </select>
  );
}

interface RowProps {
  row: ConditionRow;
  nth: number;
  paths: readonly KnownPath[];
  onChange: (row: ConditionRow) => void;
  onRemove: () => void;
}

function Row({ row, nth, paths, onChange, onRemove }: RowProps) {
  const { t } = useTranslation();
  const typeOf = (path: string) => paths.find((one) => one.path === path)?.type ?? "";
  const type = typeOf(row.path);
  const operators = [...new Set([...operatorsFor(type), row.operator])];
  return (
    <div className="flex flex-wrap items-center gap-1">
      <PathSelect
        label={t("builder.field", { nth })}
        path={row.path}
        paths={paths}
        onChoose={(path) => {
          const next = typeOf(path);
          const operator = operatorsFor(next).includes(row.operator) ? row.operator : operatorsFor(next)[0];
          onChange(withOperator({ ...row, path }, next, operator as Operator));
        }}
      />
      <select
        aria-label={t("builder.operator", { nth })}
        value={row.operator}
        onChange={(event) => onChange(withOperator(row, type, event.target.value as Operator))}
        className={`${SMALL} flex-1`}
      >
        {operators.map((one) => (
          <option key={one} value={one}>
            {t(`operator.${one}`)}
          </option>
        ))}
      </select>
      {takesValue(row.operator) ? (
        <ValueInput
          label={t("builder.value", { nth })}
          value={row.value ?? ""}
          isText={type === "string"}
          onChange={(value) => onChange({ ...row, value })}
        />
      ) : null}
      <IconButton icon={X} size="small" name={t("builder.remove", { nth })} onClick={onRemove} />
    </div>
  );
}

function withOperator({ path, value }: ConditionRow, type: string, operator: Operator): ConditionRow {
  if (!takesValue(operator)) return { path, operator };
  return { path, operator, value: value ?? (type === "number" || type === "integer" ? 0 : "") };
}

/** Text stays text; other input is a number, yes or no where it looks like one. */
function ValueInput(props: { label: string; value: Json; isText: boolean; onChange: (value: Json) => void }) {
  const { label, value, isText, onChange } = props;
  const written = isText ? String(value) : textOfValue(value);
  const [typed, setTyped] = useState({ text: written, of: written });
  return (
    <input
      aria-label={label}
      value={typed.of === written ? typed.text : written}
      onChange={(event) => {
        const text = event.target.value;
        const parsed = isText ? text : (valueOfText(text) ?? "");
        const next = typeof parsed === "object" ? text : parsed;
        setTyped({ text, of: isText ? String(next) : textOfValue(next) });
        onChange(next);
      }}
      className={`${SMALL} w-24 flex-1`}
    />
  );
}

function PathSelect(props: {
  label: string;
  path: string;
  paths: readonly KnownPath[];
  onChoose: (path: string) => void;
}) {
  const { t } = useTranslation();
  const { label, path, paths, onChoose } = props;
  const isListed = path === "" || paths.some((one) => one.path === path);
  return (
    <select
      aria-label={label}
      title={path}
      value={path}
      onChange={(event) => onChoose(event.target.value)}
      className={`${SMALL} w-full`}
    >
      {path === "" ? <option value="">{t("builder.choose")}</option> : null}
      {isListed ? null : <option value={path}>{path}</option>}
      {paths.map((one) => (
        <option key={one.path} value={one.path}>
          {one.label}
          {one.type ? ` (${t(`schema.${one.type}`, one.type)})` : ""}
        </option>
      ))}
    </select>
  );
}
