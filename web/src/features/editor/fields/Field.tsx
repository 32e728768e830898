/** One value of a definition, with its label, what it means and what is wrong with it. Emptied, it is gone. */
import { useId } from "react";
import { useTranslation } from "react-i18next";
import type { Json } from "@/api/views";
import { Spelled } from "@/components/Spelled";
import { Why } from "@/components/Why";
import { useGiven } from "@/i18n/given";
import type { FieldShape } from "../shapes";
import { BooleanBox, Choice, Choices, NumberBox, TextBox, ValueBox, Words } from "./boxes";
import { Formulas, FormulaText } from "./FormulaField";
import { Group, Kinds, List, NamedGroups } from "./groups";
import { JsonBox } from "./JsonBox";
import { Localize } from "./LocalizedText";
import { Pick, Picks } from "./Pick";
import { useCalled, useWrong } from "./place";
import { Rows } from "./Rows";
import { SchemaBuilder } from "./SchemaBuilder";
import { ToolArguments } from "./ToolArguments";

export interface FieldProps {
  shape: FieldShape;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  /** JSON pointer of the value in the definition. */
  at: string;
  /** The values beside it. */
  beside?: { [name: string]: Json | undefined };
}

/** What every way to fill in a value is given. */
export interface BoxProps {
  id: string;
  labelledBy: string;
  describedBy: string | undefined;
  isWrong: boolean;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  at: string;
  name: string;
}

/** Texts that people read, in their language. */
const LOCALIZED = new Set(["name", "title", "description"]);
const NESTED = new Set(["group", "list", "kinds", "named", "rows"]);
/** Those that are a box with an id; the others are groups of boxes. */
const LABELLED = new Set(["text", "long", "number", "choice", "duration", "size", "value", "pick", "boolean"]);

export function Field(props: FieldProps) {
  const { shape, value, onChange, at } = props;
  const { t } = useTranslation();
  const called = useCalled();
  const given = useGiven();
  const about = given.about(shape.about);
  const id = useId();
  const wrong = useWrong(at, !NESTED.has(shape.control.kind));
  const worst = wrong.find((one) => one.severity === "error") ?? wrong[0];
  const isWrong = wrong.some((one) => one.severity === "error");
  const told = [worst ? `${id}-wrong` : "", about ? `${id}-about` : ""].filter(Boolean).join(" ");
  const box: BoxProps = {
    id,
    labelledBy: `${id}-label`,
    describedBy: told || undefined,
    isWrong,
    value,
    onChange,
    at,
    name: called(shape.name),
  };
  const label = (
    <>
      {called(shape.name)}
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
          <Why code={worst.code} message={worst.message} hint={worst.hint} />
        </p>
      ) : null}
      {about ? (
        <p id={`${id}-about`} className="mt-0.5 text-xs text-ink-faint">
          <Spelled text={about} />
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
