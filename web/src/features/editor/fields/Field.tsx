/**
 * Fields of a definition, each with its label, help text and problems; groups and lists contain fields again.
 * An emptied field is removed from the definition.
 */

import { ChevronDown, ChevronUp, Plus, X } from "lucide-react";
import { type ReactNode, useEffect, useId, useState } from "react";
import { useTranslation } from "react-i18next";
import type { Json, JsonObject } from "@/api/views";
import { Button } from "@/components/Button";
import { CodeText } from "@/components/CodeText";
import { ErrorDetail } from "@/components/ErrorDetail";
import { IconButton } from "@/components/IconButton";
import { useServerTexts } from "@/i18n/given";
import type { FieldShape } from "../document/shapes";
import { objectOf } from "../document/shapes";
import { BooleanBox, Choice, Choices, FIELD_STYLE, Localize, NumberBox, TextBox, ValueBox, Words } from "./boxes";
import { Formulas, FormulaText } from "./FormulaField";
import type { BoxProps } from "./fieldContext";
import { pointerTo, useFieldLabel, useProblems } from "./fieldContext";
import { JsonBox } from "./JsonBox";
import { Pick, Picks } from "./Pick";
import { Rows } from "./Rows";
import { SchemaBuilder } from "./SchemaBuilder";
import { ToolArguments } from "./ToolArguments";

export interface FieldProps {
  shape: FieldShape;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  /** JSON pointer of the value in the definition. */
  at: string;
  /** The sibling values. */
  beside?: { [name: string]: Json | undefined };
}

/** Fields with texts in several languages. */
const LOCALIZED = new Set(["name", "title", "description"]);
const NESTED = new Set(["group", "list", "kinds", "named", "rows"]);
/** Controls that are a single input with an id; the others are groups of inputs. */
const LABELLED = new Set(["text", "long", "number", "choice", "duration", "size", "value", "pick", "boolean"]);

export function Field(props: FieldProps) {
  const { shape, value, onChange, at } = props;
  const { t } = useTranslation();
  const labelOf = useFieldLabel();
  const given = useServerTexts();
  const about = given.about(shape.about);
  const id = useId();
  const wrong = useProblems(at, !NESTED.has(shape.control.kind));
  const worst = wrong.find((one) => one.severity === "error") ?? wrong[0];
  const isWrong = wrong.some((one) => one.severity === "error");
  const describedBy = [worst ? `${id}-wrong` : "", about ? `${id}-about` : ""].filter(Boolean).join(" ");
  const box: BoxProps = {
    id,
    labelledBy: `${id}-label`,
    describedBy: describedBy || undefined,
    isWrong,
    value,
    onChange,
    at,
    name: labelOf(shape.name),
  };
  const label = (
    <>
      {labelOf(shape.name)}
      {shape.required ? (
        <span className="text-failed" title={t("editor.required")}>
          {" "}
          *
        </span>
      ) : null}
    </>
  );
  const remarks = (
    <>
      {worst ? (
        <p id={`${id}-wrong`} className={`mt-0.5 text-xs ${isWrong ? "text-failed" : "text-waiting"}`}>
          <ErrorDetail code={worst.code} message={worst.message} hint={worst.hint} />
        </p>
      ) : null}
      {about ? (
        <p id={`${id}-about`} className="mt-0.5 text-xs text-ink-faint">
          <CodeText text={about} />
        </p>
      ) : null}
    </>
  );
  if (shape.control.kind === "group")
    return (
      <div data-at={at}>
        <Group {...box} fields={shape.control.fields} about={about} />
      </div>
    );
  if (shape.control.kind === "boolean")
    return (
      <div data-at={at}>
        <div className="flex min-h-6 items-center gap-2">
          <BooleanBox {...box} />
          <label id={box.labelledBy} htmlFor={id} className="font-medium" title={shape.name}>
            {label}
          </label>
        </div>
        {remarks}
      </div>
    );
  return (
    <div data-at={at}>
      {LABELLED.has(shape.control.kind) ? (
        <label id={box.labelledBy} htmlFor={id} className="mb-0.5 block font-medium" title={shape.name}>
          {label}
        </label>
      ) : (
        <span id={box.labelledBy} className="mb-0.5 block font-medium" title={shape.name}>
          {label}
        </span>
      )}
      <Box {...props} box={box} />
      {remarks}
    </div>
  );
}

function Box({ shape, box, beside }: FieldProps & { box: BoxProps }) {
  const { i18n } = useTranslation();
  const { control } = shape;
  switch (control.kind) {
    case "text":
    case "long":
    case "duration":
    case "size":
      return (
        <>
          <TextBox {...box} kind={control.kind} isCode={shape.name === "source"} />
          {LOCALIZED.has(shape.name) ? <Localize box={box} language={i18n.language} /> : null}
        </>
      );
    case "number":
      return <NumberBox {...box} {...control} />;
    case "choice":
      return <Choice {...box} field={shape.name} choices={control.choices} />;
    case "choices":
      return <Choices {...box} field={shape.name} choices={control.choices} />;
    case "words":
      return <Words {...box} />;
    case "value":
      return <ValueBox {...box} />;
    case "formula":
      return <FormulaText {...box} spelled={control.in} />;
    case "formulas":
      return <Formulas {...box} spelled={control.in} />;
    case "rows":
      return shape.name === "parameters" && typeof beside?.tool === "string" ? (
        <ToolArguments {...box} tool={beside.tool} />
      ) : (
        <Rows {...box} spelled={control.in} />
      );
    case "pick":
      return <Pick {...box} of={control.of} />;
    case "picks":
      return <Picks {...box} of={control.of} />;
    case "list":
      return <List {...box} fields={control.fields} short={control.short} />;
    case "kinds":
      return <Kinds {...box} kinds={control.kinds} />;
    case "named":
      return <NamedGroups {...box} fields={control.fields} />;
    case "schema":
      return <SchemaBuilder {...box} />;
    default:
      return <JsonBox {...box} />;
  }
}

/** Fields of an object. An emptied field is removed, and so is an empty object. */
export function Fields(props: {
  fields: readonly FieldShape[];
  value: Json | undefined;
  at: string;
  onChange: (value: JsonObject | undefined) => void;
}) {
  const value = objectOf(props.value);
  const change = (name: string) => (next: Json | undefined) => {
    const { [name]: _, ...rest } = value;
    const changed = next === undefined ? rest : name in value ? { ...value, [name]: next } : { ...rest, [name]: next };
    props.onChange(Object.keys(changed).length > 0 ? changed : undefined);
  };
  return (
    <div className="space-y-3">
      {props.fields.map((one) => (
        <Field
          key={one.name}
          shape={one}
          value={value[one.name]}
          at={pointerTo(props.at, one.name)}
          beside={value}
          onChange={change(one.name)}
        />
      ))}
    </div>
  );
}

export function Group(box: BoxProps & { fields: readonly FieldShape[]; about: string }) {
  const wrong = useProblems(box.at, true);
  const set = Object.keys(objectOf(box.value)).length;
  return (
    <Folded name={box.name} count={set} isWrong={wrong.length > 0}>
      {box.about ? (
        <p className="mb-2 text-xs text-ink-faint">
          <CodeText text={box.about} />
        </p>
      ) : null}
      <Fields fields={box.fields} value={box.value} at={box.at} onChange={box.onChange} />
    </Folded>
  );
}

/**
 * Collapsible group: opens if something inside is wrong and shows the number of filled fields. Collapsed content is not
 * rendered.
 */
export function Folded(props: {
  name: string;
  count: number;
  isWrong: boolean;
  isOpen?: boolean;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  const { isWrong, isOpen = false } = props;
  const [isShown, setShown] = useState(isOpen || isWrong);
  useEffect(() => {
    if (isOpen || isWrong) setShown(true);
  }, [isOpen, isWrong]);
  return (
    <details
      open={isShown}
      onToggle={(event) => setShown(event.currentTarget.open)}
      className="rounded-md border border-line"
    >
      <summary className="cursor-pointer px-2 py-1.5 font-medium">
        {props.name}
        {props.count > 0 ? (
          <span className="ml-2 text-xs font-normal text-ink-faint">{t("editor.filled", { count: props.count })}</span>
        ) : null}
        {isWrong ? <span className="ml-2 text-xs text-failed">{t("editor.wrongInside")}</span> : null}
      </summary>
      {isShown ? <div className="border-t border-line p-2">{props.children}</div> : null}
    </details>
  );
}

export function List(box: BoxProps & { fields: readonly FieldShape[]; short: string | null }) {
  const { t } = useTranslation();
  const all = Array.isArray(box.value) ? box.value : [];
  const change = (next: Json[]) => box.onChange(next.length > 0 ? next : undefined);
  const { short } = box;
  const fresh = Object.fromEntries(box.fields.filter((one) => one.required).map((one) => [one.name, emptyOf(one)]));
  return (
    <div className="space-y-2">
      {all.map((one, at) => (
        <Entry
          // biome-ignore lint/suspicious/noArrayIndexKey: entries have no identity besides their index
          key={at}
          name={t("editor.nth", { name: box.name, nth: at + 1 })}
          at={pointerTo(box.at, at)}
          onRemove={() => change(all.toSpliced(at, 1))}
          {...(at > 0 ? { onUp: () => change(all.with(at - 1, one).with(at, all[at - 1] as Json)) } : {})}
          {...(at < all.length - 1
            ? { onDown: () => change(all.with(at + 1, one).with(at, all[at + 1] as Json)) }
            : {})}
        >
          <Fields
            fields={box.fields}
            value={typeof one === "string" && short ? { [short]: one } : one}
            at={pointerTo(box.at, at)}
            onChange={(next) => change(all.with(at, shortened(next ?? {}, short, one)))}
          />
        </Entry>
      ))}
      <Button kind="quiet" className="h-7 px-2 text-sm" onClick={() => change([...all, short ? "" : fresh])}>
        <Plus className="size-4" /> {t("editor.add")}
      </Button>
    </div>
  );
}

/** Entries in the short form keep it while they have no other fields. */
function shortened(value: JsonObject, short: string | null, before: Json): Json {
  const keys = Object.keys(value);
  if (short === null || typeof before !== "string") return value;
  return keys.length === 1 && typeof value[short] === "string" ? value[short] : keys.length === 0 ? "" : value;
}

function emptyOf(field: FieldShape): Json {
  return field.control.kind === "group" ? {} : field.control.kind === "choice" ? (field.control.choices[0] ?? "") : "";
}

/** List of entries of several kinds; the kind of an entry is the field that only it has. */
export function Kinds(box: BoxProps & { kinds: { name: string; fields: FieldShape[] }[] }) {
  const { t } = useTranslation();
  const labelOf = useFieldLabel();
  const [kind, setKind] = useState(box.kinds[0]?.name ?? "");
  const all = Array.isArray(box.value) ? box.value : [];
  const change = (next: Json[]) => box.onChange(next.length > 0 ? next : undefined);
  const add = () => {
    const fields = box.kinds.find((one) => one.name === kind)?.fields ?? [];
    change([...all, Object.fromEntries(fields.filter((one) => one.required).map((one) => [one.name, emptyOf(one)]))]);
  };
  return (
    <div className="space-y-2">
      {all.map((one, at) => {
        const known = box.kinds.find((other) => other.name in objectOf(one));
        return (
          <Entry
            // biome-ignore lint/suspicious/noArrayIndexKey: entries have no identity besides their index
            key={at}
            name={`${at + 1}. ${known ? labelOf(known.name) : "?"}`}
            at={pointerTo(box.at, at)}
            onRemove={() => change(all.toSpliced(at, 1))}
            {...(at > 0 ? { onUp: () => change(all.with(at - 1, one).with(at, all[at - 1] as Json)) } : {})}
            {...(at < all.length - 1
              ? { onDown: () => change(all.with(at + 1, one).with(at, all[at + 1] as Json)) }
              : {})}
          >
            <Fields
              fields={known?.fields ?? []}
              value={one}
              at={pointerTo(box.at, at)}
              onChange={(next) => change(all.with(at, known ? { [known.name]: "", ...next } : (next ?? {})))}
            />
          </Entry>
        );
      })}
      <div className="flex gap-1">
        <select
          aria-label={t("editor.kind")}
          value={kind}
          onChange={(event) => setKind(event.target.value)}
          className={`${FIELD_STYLE} border-line-strong`}
        >
          {box.kinds.map((one) => (
            <option key={one.name} value={one.name}>
              {labelOf(one.name)}
            </option>
          ))}
        </select>
        <Button onClick={add}>
          <Plus className="size-4" /> {t("editor.add")}
        </Button>
      </div>
    </div>
  );
}

function Entry(props: {
  name: string;
  at: string;
  onRemove: () => void;
  onUp?: () => void;
  onDown?: () => void;
  children: ReactNode;
}) {
  const { t } = useTranslation();
  return (
    <fieldset data-at={props.at} className="rounded-md border border-line p-2">
      <legend className="sr-only">{props.name}</legend>
      <div className="mb-1 flex items-center">
        <span className="flex-1 text-sm font-medium text-ink-soft" aria-hidden>
          {props.name}
        </span>
        {props.onUp ? (
          <IconButton icon={ChevronUp} name={t("editor.up", { name: props.name })} size="small" onClick={props.onUp} />
        ) : null}
        {props.onDown ? (
          <IconButton
            icon={ChevronDown}
            name={t("editor.down", { name: props.name })}
            size="small"
            onClick={props.onDown}
          />
        ) : null}
        <IconButton icon={X} name={t("editor.takeOut", { name: props.name })} size="small" onClick={props.onRemove} />
      </div>
      {props.children}
    </fieldset>
  );
}

/** Map of names to groups. */
export function NamedGroups(box: BoxProps & { fields: readonly FieldShape[] }) {
  const { t } = useTranslation();
  const [name, setName] = useState("");
  const all = objectOf(box.value);
  const isFree = name.trim() !== "" && !(name.trim() in all);
  const change = (next: JsonObject) => box.onChange(Object.keys(next).length > 0 ? next : undefined);
  return (
    <div className="space-y-2">
      {Object.entries(all).map(([key, one]) => (
        <Folded key={key} name={key} count={Object.keys(objectOf(one)).length} isWrong={false}>
          <Fields
            fields={box.fields}
            value={one}
            at={pointerTo(box.at, key)}
            onChange={(next) => change({ ...all, [key]: next ?? {} })}
          />
          <Button
            kind="danger"
            className="mt-3"
            onClick={() => change(Object.fromEntries(Object.entries(all).filter(([other]) => other !== key)))}
          >
            {t("editor.takeOut", { name: key })}
          </Button>
        </Folded>
      ))}
      <form
        className="flex gap-1"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isFree) return;
          change({ ...all, [name.trim()]: {} });
          setName("");
        }}
      >
        <input
          aria-label={t("editor.newName")}
          placeholder={t("editor.newName")}
          value={name}
          onChange={(event) => setName(event.target.value)}
          className={`${FIELD_STYLE} border-line-strong`}
        />
        <Button type="submit" disabled={!isFree}>
          <Plus className="size-4" /> {t("editor.add")}
        </Button>
      </form>
    </div>
  );
}
