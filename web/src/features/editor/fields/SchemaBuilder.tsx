/**
 * Editor for the JSON Schema of an object: name, type, required and description of each field. Other keywords are
 * preserved.
 */

import { Plus, X } from "lucide-react";
import { useEffect, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { IconButton } from "@/components/IconButton";
import { objectOf } from "../document/shapes";
import { FIELD_STYLE, textOfValue, valueOfText } from "./boxes";
import type { BoxProps } from "./fieldContext";
import { JsonBox } from "./JsonBox";

const TYPES = ["string", "number", "integer", "boolean", "array", "object"];
const SMALL = `${FIELD_STYLE} border-line-strong text-sm`;

export function SchemaBuilder(box: BoxProps) {
  const { t } = useTranslation();
  const [isJson, setJson] = useState(false);
  const [added, add] = useState<number | null>(null);
  const schema = objectOf(box.value);
  const properties = objectOf(schema.properties);
  const required = Array.isArray(schema.required) ? schema.required.map(String) : [];
  const isSimple = !schema.type || schema.type === "object";
  const write = (fields: [string, JsonObject][], needed: string[]) => {
    const { required: _, ...rest } = schema;
    if (fields.length === 0 && Object.keys(rest).every((key) => key === "type" || key === "properties"))
      return box.onChange(undefined);
    const next: JsonObject = { ...rest, type: "object", properties: Object.fromEntries(fields) };
    box.onChange(needed.length > 0 ? { ...next, required: needed } : next);
  };
  const fields = Object.entries(properties).map(([name, one]): [string, JsonObject] => [name, objectOf(one)]);
  const change = (at: number, name: string, field: JsonObject) => {
    const before = fields[at]?.[0] ?? "";
    if (name !== before && name in properties) return;
    write(
      fields.with(at, [name, field]),
      required.map((one) => (one === before ? name : one)),
    );
  };
  return (
    <fieldset aria-labelledby={box.labelledBy} className="space-y-2">
      {isJson || !isSimple ? (
        <JsonBox {...box} />
      ) : (
        <>
          {fields.map(([name, field], at) => (
            <SchemaField
              // biome-ignore lint/suspicious/noArrayIndexKey: the user edits the names
              key={at}
              name={name}
              field={field}
              isRequired={required.includes(name)}
              isNew={at === added}
              onChange={(next, changed) => change(at, next, changed)}
              onRequire={(is) => write(fields, is ? [...required, name] : required.filter((one) => one !== name))}
              onRemove={() =>
                write(
                  fields.toSpliced(at, 1),
                  required.filter((one) => one !== name),
                )
              }
            />
          ))}
          <Button
            kind="quiet"
            className="h-7 px-2 text-sm"
            onClick={() => {
              add(fields.length);
              write([...fields, [freshName(properties), { type: "string" }]], required);
            }}
          >
            <Plus className="size-4" /> {t("schema.add")}
          </Button>
        </>
      )}
      {isSimple ? (
        <Button kind="quiet" className="h-7 px-2 text-sm" aria-pressed={isJson} onClick={() => setJson(!isJson)}>
          {isJson ? t("schema.asFields") : t("schema.asJson")}
        </Button>
      ) : null}
    </fieldset>
  );
}

function freshName(properties: JsonObject): string {
  let nth = Object.keys(properties).length + 1;
  while (`field${nth}` in properties) nth += 1;
  return `field${nth}`;
}

function SchemaField(props: {
  name: string;
  field: JsonObject;
  isRequired: boolean;
  /** The field was just added, so its name is selected for typing. */
  isNew: boolean;
  onChange: (name: string, field: JsonObject) => void;
  onRequire: (isRequired: boolean) => void;
  onRemove: () => void;
}) {
  const { t } = useTranslation();
  const { name, field } = props;
  const [typed, setTyped] = useState(name);
  const box = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (props.isNew) box.current?.select();
  }, [props.isNew]);
  const call = () => (typed.trim() ? props.onChange(typed.trim(), field) : setTyped(name));
  const set = (key: string, value: Json | undefined) => {
    const { [key]: _, ...rest } = field;
    props.onChange(name, value === undefined ? rest : { ...field, [key]: value });
  };
  const type = typeof field.type === "string" ? field.type : "";
  return (
    <fieldset className="space-y-1.5 rounded-md border border-line p-2">
      <legend className="sr-only">{name}</legend>
      <div className="flex gap-1">
        <input
          ref={box}
          aria-label={t("schema.name")}
          value={typed}
          onChange={(event) => setTyped(event.target.value)}
          onBlur={call}
          onKeyDown={(event) => {
            if (event.key === "Enter") call();
          }}
          className={`${SMALL} font-mono`}
        />
        <select
          aria-label={t("schema.type")}
          value={type}
          onChange={(event) => set("type", event.target.value || undefined)}
          className={`${SMALL} w-32!`}
        >
          <option value="">{t("schema.any")}</option>
          {[...new Set([...TYPES, type])].filter(Boolean).map((one) => (
            <option key={one} value={one}>
              {t(`schema.${one}`, one)}
            </option>
          ))}
        </select>
        <IconButton icon={X} name={t("editor.takeOut", { name })} onClick={props.onRemove} />
      </div>
      <input
        aria-label={t("schema.title")}
        placeholder={t("schema.title")}
        value={typeof field.title === "string" ? field.title : ""}
        onChange={(event) => set("title", event.target.value || undefined)}
        className={SMALL}
      />
      <input
        aria-label={t("schema.about")}
        placeholder={t("schema.about")}
        value={typeof field.description === "string" ? field.description : ""}
        onChange={(event) => set("description", event.target.value || undefined)}
        className={SMALL}
      />
      <div className="flex items-center gap-3">
        <label className="flex min-h-6 items-center gap-1.5 text-sm">
          <input
            type="checkbox"
            className="size-4"
            checked={props.isRequired}
            onChange={(event) => props.onRequire(event.target.checked)}
          />
          {t("schema.required")}
        </label>
        <input
          aria-label={t("schema.default")}
          placeholder={t("schema.default")}
          value={textOfValue(field.default)}
          onChange={(event) =>
            set("default", type === "string" ? event.target.value || undefined : valueOfText(event.target.value))
          }
          className={SMALL}
        />
      </div>
    </fieldset>
  );
}
