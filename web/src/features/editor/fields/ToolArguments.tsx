/** Arguments of a tool: one field for each parameter in its schema. */

import { useQuery } from "@tanstack/react-query";
import { useId } from "react";
import type { Json, JsonObject } from "@/api/views";
import { ErrorDetail } from "@/components/ErrorDetail";
import { toolsByName } from "@/features/tools/tools";
import { objectOf } from "../document/shapes";
import { textOfValue, valueOfText } from "./boxes";
import { Formula } from "./FormulaField";
import type { BoxProps } from "./fieldContext";
import { pointerTo, useForm, useProblems } from "./fieldContext";
import { Rows } from "./Rows";

export function ToolArguments(box: BoxProps & { tool: string }) {
  // While the user types, the name may not belong to a tool yet.
  const known = useQuery({ ...toolsByName([box.tool]), enabled: box.tool !== "" });
  const schema = objectOf(known.data?.[0]?.parameters as Json | undefined);
  const taken = Object.entries(objectOf(schema.properties));
  const value = objectOf(box.value);
  if (taken.length === 0) return <Rows {...box} spelled="value" />;
  const required = new Set((schema.required as string[] | undefined) ?? []);
  const change = (name: string, next: Json | undefined) => {
    const { [name]: _, ...rest } = value;
    const changed: JsonObject = next === undefined ? rest : { ...value, [name]: next };
    box.onChange(Object.keys(changed).length > 0 ? changed : undefined);
  };
  const others = Object.fromEntries(Object.entries(value).filter(([name]) => !taken.some(([one]) => one === name)));
  const mine = Object.fromEntries(Object.entries(value).filter(([name]) => !(name in others)));
  return (
    <fieldset aria-labelledby={box.labelledBy} className="space-y-2 rounded-md border border-line p-2">
      {taken.map(([name, about]) => (
        <Argument
          key={name}
          name={name}
          schema={objectOf(about)}
          isRequired={required.has(name)}
          at={pointerTo(box.at, name)}
          value={value[name]}
          onChange={(next) => change(name, next)}
        />
      ))}
      {Object.keys(others).length > 0 ? (
        <Rows
          {...box}
          spelled="value"
          value={others}
          onChange={(next) => box.onChange({ ...mine, ...objectOf(next) })}
        />
      ) : null}
    </fieldset>
  );
}

function Argument(props: {
  name: string;
  schema: JsonObject;
  isRequired: boolean;
  at: string;
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
}) {
  const { known } = useForm();
  const id = useId();
  const wrong = useProblems(props.at, true)[0];
  const { schema } = props;
  const isText = schema.type === "string";
  return (
    <div data-at={props.at}>
      <span id={id} className="mb-0.5 block text-sm font-medium">
        {props.name}
        {props.isRequired ? <span className="text-failed"> *</span> : null}
        {typeof schema.type === "string" ? (
          <span className="ml-1 font-normal text-ink-faint">{schema.type}</span>
        ) : null}
      </span>
      <Formula
        value={isText && typeof props.value === "string" ? props.value : textOfValue(props.value)}
        onChange={(text) => props.onChange(isText ? text || undefined : valueOfText(text))}
        spelled="template"
        known={known}
        labelledBy={id}
        isWrong={wrong?.severity === "error"}
      />
      {wrong ? (
        <ErrorDetail
          code={wrong.code}
          message={wrong.message}
          look={`text-xs ${wrong.severity === "error" ? "text-failed" : "text-waiting"}`}
        />
      ) : null}
      {typeof schema.description === "string" ? <p className="text-xs text-ink-faint">{schema.description}</p> : null}
    </div>
  );
}
