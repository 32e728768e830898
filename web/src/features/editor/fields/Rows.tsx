/** Map of names to expressions, one row each. */

import { Plus, X } from "lucide-react";
import { lazy, Suspense, useEffect, useId, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { ErrorDetail } from "@/components/ErrorDetail";
import { IconButton } from "@/components/IconButton";
import { type FormulaSyntax, objectOf } from "../document/shapes";
import { FIELD_STYLE, ValueBox } from "./boxes";
import { Formula, FormulaText } from "./FormulaField";
import type { BoxProps } from "./fieldContext";
import { pointerTo, useForm, useProblems } from "./fieldContext";

const JsonBox = lazy(() => import("./JsonBox").then((one) => ({ default: one.JsonBox })));

interface Row {
  name: string;
  value: Json;
}

export function Rows(box: BoxProps & { spelled: FormulaSyntax | "value" }) {
  const { t } = useTranslation();
  const [rows, setRows] = useState(() => rowsOf(box.value));
  const [added, add] = useState<number | null>(null);
  // The document does not contain empty rows, so this component keeps them until they have a value.
  useEffect(
    () => setRows((now) => (isSameObject(objectFrom(now), objectOf(box.value)) ? now : rowsOf(box.value))),
    [box.value],
  );
  if (typeof box.value === "string" && box.spelled !== "value") return <FormulaText {...box} spelled={box.spelled} />;
  if (Array.isArray(box.value)) return <JsonBox {...box} />;
  const change = (next: Row[]) => {
    setRows(next);
    const value = objectFrom(next);
    box.onChange(Object.keys(value).length > 0 ? value : undefined);
  };
  return (
    <fieldset aria-labelledby={box.labelledBy} className="space-y-1">
      {rows.map((row, at) => (
        <RowFields
          // biome-ignore lint/suspicious/noArrayIndexKey: the user edits the names
          key={at}
          row={row}
          spelled={box.spelled}
          at={pointerTo(box.at, row.name)}
          isNew={at === added}
          isDuplicate={rows.some((other, place) => place < at && other.name === row.name)}
          onChange={(next) => change(rows.with(at, next))}
          onRemove={() => change(rows.toSpliced(at, 1))}
        />
      ))}
      <Suspense>
        <Button
          kind="quiet"
          className="h-6 px-2 text-xs"
          onClick={() => {
            add(rows.length);
            setRows([...rows, { name: "", value: "" }]);
          }}
        >
          <Plus className="size-3" /> {t("editor.add")}
        </Button>
      </Suspense>
    </fieldset>
  );
}

function RowFields(props: {
  row: Row;
  spelled: FormulaSyntax | "value";
  at: string;
  isDuplicate: boolean;
  isNew: boolean;
  onChange: (row: Row) => void;
  onRemove: () => void;
}) {
  const { t } = useTranslation();
  const { known } = useForm();
  const { row, spelled, onChange } = props;
  const id = useId();
  const wrong = useProblems(props.at, true)[0];
  const name = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (props.isNew) name.current?.focus();
  }, [props.isNew]);
  const label = t("editor.valueOf", { name: row.name || "…" });
  return (
    <div data-at={props.at}>
      <div className="flex items-start gap-1">
        <input
          ref={name}
          aria-label={t("editor.rowName")}
          value={row.name}
          aria-invalid={props.isDuplicate}
          onChange={(event) => onChange({ ...row, name: event.target.value })}
          className={`${FIELD_STYLE} w-2/5! border-line-strong font-mono text-xs`}
        />
        <span id={id} className="sr-only">
          {label}
        </span>
        <div className="min-w-0 flex-1">
          {spelled === "value" ? (
            <ValueBox
              id={`${id}-box`}
              labelledBy={id}
              describedBy={undefined}
              isWrong={false}
              name={label}
              at={props.at}
              value={row.value}
              onChange={(value) => onChange({ ...row, value: value ?? "" })}
            />
          ) : (
            <Formula
              value={typeof row.value === "string" ? row.value : JSON.stringify(row.value)}
              onChange={(value) => onChange({ ...row, value })}
              spelled={spelled}
              known={known}
              labelledBy={id}
              isWrong={wrong?.severity === "error"}
            />
          )}
        </div>
        <IconButton icon={X} name={t("editor.takeOut", { name: row.name })} onClick={props.onRemove} />
      </div>
      {props.isDuplicate ? <p className="text-xs text-failed">{t("editor.twice")}</p> : null}
      {wrong ? (
        <ErrorDetail
          code={wrong.code}
          message={wrong.message}
          hint={wrong.hint}
          look={`text-xs ${wrong.severity === "error" ? "text-failed" : "text-waiting"}`}
        />
      ) : null}
    </div>
  );
}

function rowsOf(value: Json | undefined): Row[] {
  return Object.entries(objectOf(value)).map(([name, one]) => ({ name, value: one }));
}

/** The first of several rows with the same name counts; rows without a name or value are ignored. */
function objectFrom(rows: readonly Row[]): JsonObject {
  const found: JsonObject = {};
  for (const { name, value } of rows) if (name && value !== "" && !(name in found)) found[name] = value;
  return found;
}

function isSameObject(one: JsonObject, other: JsonObject): boolean {
  return JSON.stringify(one) === JSON.stringify(other);
}
